import { boundText } from '../../boundText.ts'
import type { CapturedRecord } from '../../model.ts'
import { type Database, epochMsSql, inTransaction } from '../../postgres/database.ts'
import type { Resource } from '../../resources.ts'
import { insertCapturedRecords } from '../capture.ts'
import {
  acceptLossAsOperator,
  ledgerRestoredMessage,
  lockSuspectedLossIfUnchanged,
  raiseHistoryProblem,
} from '../history/history.ts'
import { lockSubmissionsAndReadKeys, withKeysLockedThenReleased } from '../keyOrder.ts'
import { type PollQueue, withdrawAllPolls } from '../queue.ts'
import {
  hasTransactionIdSql,
  lockTransactionIds,
  readTransactionHolders,
  type TransactionRef,
  toTransactionName,
} from '../transactions.ts'
import { decisionSql, writeDecisions } from './decisions.ts'
import {
  type Actor,
  logOperatorAct,
  type Operator,
  reasonAndAccountJsonSql,
  type SeenRecord,
  withOpenQueue,
} from './operator.ts'
import { settleArrivedRecords } from './resolveSubmission.ts'

/*
 * Used after the ledger lost data. A record whose row names a transaction is tracked. All other records in doubt
 * become uncertain, or are sent if the operator says so.
 */

export type RecoveredAs = 'uncertain' | 'new'

export interface DoubtfulRecordCounts {
  /** Queued records, and those whose id is asked for. */
  queued: number
  oldestMs: number | null
  newestMs: number | null
  /** Records that are being sent, or became uncertain after a daemon last found the history unchanged. */
  onWire: number
  /** Accepted records, which may have failed and been sent again. */
  accepted: number
}

export async function countDoubtfulRecords(db: Database): Promise<DoubtfulRecordCounts> {
  const { rows } = await db.query<DoubtfulRecordCounts>(
    `select count(*)::int as queued, ${epochMsSql('min(s.recorded_at)')} as "oldestMs",
       ${epochMsSql('max(s.recorded_at)')} as "newestMs",
       (select count(*)::int from outboxd.submission w where w.state = 'sending' and not w.probing or w.state = 'uncertain'
          and w.ended_at >= (select marked_at from outboxd.history)) as "onWire",
       (select count(*)::int from outboxd.submission where state = 'accepted') as accepted
     from outboxd.submission s where s.state = 'queued' or s.probing`,
  )
  return rows[0] as DoubtfulRecordCounts
}

export interface DoubtfulRecord extends SeenRecord {
  outboxId: string
  resource: Resource
  isQueued: boolean
}

/** Reads records that may have been sent, or sent again, in their order. */
export async function readDoubtfulRecords(db: Database): Promise<DoubtfulRecord[]> {
  const { rows } = await db.query<DoubtfulRecord>(
    `select id, revision, key, outbox_id as "outboxId", resource, state = 'queued' as "isQueued" from outboxd.submission
     where state = 'queued' or state in ('sending', 'uncertain', 'failed', 'rejected') and body is not null
     order by seq`,
  )
  return rows
}

export interface CheckedTransactionId {
  id: string
  /** True if this record has, or had, the transaction according to the ledger. */
  isFormer: boolean
  /** The outbox id of another submission that has the transaction. */
  heldBy: string | null
}

export async function checkTransactionIdsOfRows(
  db: Database,
  named: readonly (TransactionRef & { id: string })[],
): Promise<CheckedTransactionId[]> {
  const isNamed = (column?: string) => hasTransactionIdSql('r."transactionId"', column)
  const { rows } = await db.query<CheckedTransactionId>(
    `select r.id, exists (
         select from outboxd.submission_event e where e.submission_id = r.id
           and (${isNamed("(e.detail ->> 'transactionId')")} or ${isNamed("(e.detail -> 'former' ->> 'transactionId')")})
       ) or exists (
         select from outboxd.submission s where s.id = r.id and ${isNamed()}
       ) as "isFormer", (
         select s.outbox_id from outboxd.submission s
         where ${isNamed()} and s.resource = r.resource and s.id <> r.id order by s.seq limit 1
       ) as "heldBy"
     from json_to_recordset($1) as r(id uuid, resource text, "transactionId" text)`,
    [JSON.stringify(named)],
  )
  return rows
}

export interface RecordNamingTransaction extends DoubtfulRecord {
  transactionId: string
  /** Why the transaction id in the row is not believed. Null if the id is believed, so that the record is polled. */
  whyNotBelieved: string | null
}

export const transactionTakenClause = (transactionId: string, outboxId: string): string =>
  `its outbox row names transaction ${transactionId}, which outbox:${outboxId} already has`

/** @param why what is wrong with the transaction that the row names */
const lostDataMessage = (why: string | null): string =>
  `the ledger lost data and had this record as queued${why === null ? '' : `; ${why}`}. The record may have arrived`

/**
 * Tracks records by the transactions that their rows name. Safe to repeat.
 * @returns false if the operator has seen a different finding, so that nothing was done
 */
export function recoverByTransactionsInRows(
  operator: Operator,
  records: readonly RecordNamingTransaction[],
  seenAtMs: number,
): Promise<boolean> {
  const { keyOnFailure, actor } = operator
  return recoverRecords(operator, async (db, queue) => {
    if (!(await lockSuspectedLossIfUnchanged(db, seenAtMs))) return false
    const trusted = records.filter(({ whyNotBelieved }) => whyNotBelieved === null)
    const holders = await lockAndFindOtherHolders(db, trusted)
    await lockSubmissionsAndReadKeys(db, records)
    await withKeysLockedThenReleased(db, records, keyOnFailure, async () => {
      const arrivals = trusted.filter(({ id }) => !holders.has(id))
      await settleArrivedRecords(db, queue, arrivals, { how: 'recovered', actor })
      const doubts = records.flatMap(({ id, revision, transactionId, whyNotBelieved }) => {
        const holder = holders.get(id)
        const why = whyNotBelieved ?? (holder === undefined ? null : transactionTakenClause(transactionId, holder))
        return why === null ? [] : [{ id, revision, error: boundText(lostDataMessage(why)) }]
      })
      await writeDecisions(db, doubtSql, doubts, actor)
    })
    return true
  })
}

/** Keeps all instances from capturing during `work`. */
function recoverRecords<T>(operator: Operator, work: (db: Database, queue: PollQueue) => Promise<T>): Promise<T> {
  return withOpenQueue(operator, (queue) =>
    inTransaction(operator.ledger, async (db) => {
      await db.query("select pg_advisory_xact_lock(7161, 'outboxd.submission'::regclass::oid::int)")
      return work(db, queue)
    }),
  )
}

/** @returns by submission id, the outbox id of another record that has the transaction */
async function lockAndFindOtherHolders(
  db: Database,
  named: readonly (TransactionRef & { id: string; outboxId: string })[],
): Promise<Map<string, string>> {
  await lockTransactionIds(db, named)
  const owners = new Map(
    (await readTransactionHolders(db, named)).map((holder) => [toTransactionName(holder), holder.outboxId]),
  )
  const others = new Map<string, string>()
  for (const each of named) {
    const owner = owners.get(toTransactionName(each))
    if (owner === undefined) owners.set(toTransactionName(each), each.outboxId)
    else others.set(each.id, owner)
  }
  return others
}

const uncertainSql = (error: string): string =>
  `state = 'uncertain', in_doubt = true, due_at = null, held = false, error = ${error}, ended_at = clock_timestamp(),
   probing = false`

const doubtSql = decisionSql({
  fields: 'error text',
  allowed: `s.state = 'queued'`,
  set: uncertainSql('r.error'),
  cause: 'recovered',
  message: `'recovered as uncertain'`,
})

export interface LostRecord extends CapturedRecord {
  /** Null if the row names no transaction, or its id is not believed. */
  transactionId: string | null
}

/**
 * Inserts records that the ledger lost although their rows were captured. Safe to repeat.
 *
 * A record whose row names a transaction is tracked, or uncertain if another record has that transaction. A record that
 * no longer maps is rejected, and may have arrived if its row names a transaction.
 */
export function recoverLostRecords(operator: Operator, records: readonly LostRecord[]): Promise<void> {
  const { keyOnFailure, actor } = operator
  return recoverRecords(operator, async (db, queue) => {
    const named = records.flatMap(({ id, outboxId, resource, transactionId, error }) =>
      resource === null || transactionId === null || error !== null
        ? []
        : [{ id, outboxId, resource, transactionId, revision: 0 }],
    )
    const holders = await lockAndFindOtherHolders(db, named)
    const kept = records.map((record) => {
      const holder = holders.get(record.id)
      if (holder === undefined || record.transactionId === null) return record
      const why = transactionTakenClause(record.transactionId, holder)
      return { ...record, doubt: `the ledger had lost this row; ${why}. The record may have arrived` }
    })
    await withKeysLockedThenReleased(db, records, keyOnFailure, async () => {
      await insertCapturedRecords(db, kept, actor.who, actor)
      const arrivals = named.filter(({ id }) => !holders.has(id))
      await settleArrivedRecords(db, queue, arrivals, { how: 'recovered', actor })
    })
  })
}

export interface RecoveryTerms {
  queuedBecome: RecoveredAs
  seenAtMs: number
  /** True if rows that waited when the loss was found may have been sent. */
  isOutboxInDoubt: boolean
  alreadyDecided: { arrived: number; uncertain: number; rows: number }
}

/**
 * Decides the queued records and agrees to the history, so that sending continues.
 *
 * A record that is sent again keeps its idempotency key and stays in doubt, so the error E002 makes it uncertain. A
 * polled record is not sent again automatically, because it may have failed and been sent again already. So polled
 * records come first: if the answer to a poll queues one meanwhile, it is decided with the queued records. All polls are
 * planned anew, because the ledger may have lost jobs.
 * @returns the number of queued records decided; null if the operator has seen a different finding
 */
export function finishRecovery(
  operator: Operator,
  { queuedBecome, seenAtMs, isOutboxInDoubt, alreadyDecided }: RecoveryTerms,
): Promise<number | null> {
  const { actor } = operator
  return recoverRecords(operator, async (db, queue) => {
    if (!(await lockSuspectedLossIfUnchanged(db, seenAtMs))) return null
    // A new revision makes the fence refuse the answer to a poll that is under way, which would undo this.
    await db.query(
      `update outboxd.submission set in_doubt = true, resubmissions = greatest(resubmissions, 3), revision = revision + 1
       where ended_at is null and (state = 'accepted' or probing)`,
    )
    let queued = 0
    for (let after: string | null = '-1'; after !== null; ) {
      const taken = await decideQueued(db, { as: queuedBecome, after }, actor)
      queued += taken.count
      after = taken.after
    }
    await withdrawAllPolls(db)
    await queue.insertMissing(db)
    await acceptLossAsOperator(db, actor.who, queuedBecome === 'uncertain' && isOutboxInDoubt)
    await logOperatorAct(db, actor, 'recover', { as: queuedBecome, queued, ...alreadyDecided, isOutboxInDoubt })
    return queued
  })
}

/** Records that one statement decides, which takes some seconds. */
const takenMax = 5_000

/** @param after a `seq` */
async function decideQueued(
  db: Database,
  { as, after }: { as: RecoveredAs; after: string },
  actor: Actor,
): Promise<{ count: number; after: string | null }> {
  const { rows } = await db.query<{ count: number; last: string | null }>(
    `with doubtful as (
       select s.id, s.seq, s.state from outboxd.submission s
       where (s.state = 'queued' ${as === 'uncertain' ? 'or s.probing' : ''}) and s.seq > $5
       order by s.seq limit ${takenMax} for update of s
     ), taken as (
       update outboxd.submission s set revision = s.revision + 1,
         ${as === 'uncertain' ? `report_due = true, ${uncertainSql('$6')}` : 'in_doubt = true'}
       from doubtful where s.id = doubtful.id returning s.id, doubtful.state as former, s.state, s.attempt
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, message, actor, who, detail)
       select id, former, state, attempt, 'recovered', 'recovered as ' || $1, 'operator', $2, ${reasonAndAccountJsonSql('$3', '$4')} from taken
     )
     select count(*)::int as count, max(seq)::text as last from doubtful where $6::text is not null`,
    [as, actor.who, actor.reason, actor.account, after, lostDataMessage(null)],
  )
  const { count, last } = rows[0] as (typeof rows)[number]
  return { count, after: count < takenMax ? null : last }
}

/**
 * Stops all daemons, because the operator says that the ledger was restored and no daemon can notice that. Runs in a
 * transaction.
 */
export async function declareLedgerRestored(db: Database, overAfterMs: number, actor: Actor): Promise<void> {
  const { who } = actor
  await raiseHistoryProblem(db, ledgerRestoredMessage(who), { actor: 'operator', who, overAfterMs })
  await logOperatorAct(db, actor, 'recover --restored', null)
}

export interface LastRecovery {
  who: string
  atMs: number
  as: RecoveredAs
}

export async function readLastRecovery(db: Database): Promise<LastRecovery | null> {
  const { rows } = await db.query<LastRecovery>(
    `select who, ${epochMsSql('at')} as "atMs", detail ->> 'as' as "as" from outboxd.operator_act
     where act = 'recover' order by id desc limit 1`,
  )
  return rows[0] ?? null
}
