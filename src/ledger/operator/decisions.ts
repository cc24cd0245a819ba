import { escapeNonAsciiFields } from '../../boundText.ts'
import type { EventCause } from '../../model/eventCauses.ts'
import type { State } from '../../model/submission.ts'
import { type Database, inTransaction } from '../../postgres/database.ts'
import { isNewestWaitingVersionSql, lockDocumentsOf } from '../documents.ts'
import { assertNoDataLost } from '../history/history.ts'
import { lockSubmissionsAndReadKeys, withKeysLockedThenReleased } from '../keyOrder.ts'
import { withdrawPolls } from '../queue.ts'
import { mayBePrunedSql } from '../retention.ts'
import { lockTransactionIds, type TransactionRef } from '../transactions.ts'
import { type Actor, logOperatorAct, type Operator, reasonAndAccountJsonSql, type SeenRecord } from './operator.ts'
import { hasKeySql } from './selectSubmissions.ts'

/**
 * SQL fragments of a statement that writes an operator's decision about records. `s` is the submission, `f` the
 * submission before the decision, `w` the submission after the decision, and `r` the caller's record.
 */
interface DecisionSqlFragments {
  /** Fields of `r` besides `id` and `revision`. */
  fields?: string
  allowed: string
  set: string
  cause: EventCause
  /** SQL of the event's message. */
  message?: string
  /** SQL arguments of jsonb_build_object: names and values of the event's detail. */
  detail?: string
  amounts?: string
}

export interface DecidedSubmission {
  id: string
  tracked: boolean
  keptKey: boolean
}

export const decisionSql = ({ fields, allowed, set, cause, message, detail, amounts }: DecisionSqlFragments): string =>
  `with record as (
     select * from json_to_recordset($1) as r(${['id uuid', 'revision int', fields].filter(Boolean).join(', ')})
   ), former as (
     -- locks in one order, so that two operators never wait for each other
     select s.* from outboxd.submission s join record r using (id)
     where s.revision = r.revision and ${allowed} order by s.id for update of s
   ), written as (
     update outboxd.submission s set revision = s.revision + 1, report_due = true, ${set}
     from former f join record r using (id) where s.id = f.id returning s.*
   ), event as (
     insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, message, actor, who, detail, amounts)
     select w.id, f.state, w.state, w.attempt, '${cause}', ${message ?? 'null'}, 'operator', $2,
       jsonb_build_object(${detail ?? ''}) || ${reasonAndAccountJsonSql('$3', '$4')}, ${amounts ?? 'null'}
     from written w join former f using (id) join record r using (id) order by f.seq
   )
   select w.id, w.tracked, w.idempotency_key = f.idempotency_key as "keptKey"
   from written w join former f using (id)`

/** Runs a statement that `decisionSql` made, and withdraws the records' polls. The caller has begun a transaction. */
export async function writeDecisions(
  db: Database,
  sql: string,
  records: readonly { id: string; revision: number }[],
  { who, reason, account }: Actor,
): Promise<DecidedSubmission[]> {
  const { rows } = await db.query<DecidedSubmission>(sql, [
    JSON.stringify(records.map(escapeNonAsciiFields)),
    who,
    reason,
    account,
  ])
  if (rows.length > 0)
    await withdrawPolls(
      db,
      rows.map(({ id }) => id),
    )
  return rows
}

/**
 * Locks these submissions, their documents, keys and transaction ids, in the order that docs/why/architecture.md gives.
 * Runs `work`, then releases the first record of each key.
 *
 * @throws LedgerMayHaveLostData
 */
export function withSubmissionsLocked<T>(
  { ledger }: Operator,
  seen: readonly Pick<SeenRecord, 'id' | 'key'>[],
  work: (db: Database) => Promise<T>,
  transactions: readonly TransactionRef[] = [],
): Promise<T> {
  return inTransaction(ledger, async (db) => {
    await assertNoDataLost(db)
    if (transactions.length > 0) await lockTransactionIds(db, transactions)
    await lockDocumentsOf(
      db,
      seen.map(({ id }) => id),
    )
    const locked = await lockSubmissionsAndReadKeys(db, seen)
    // A replay can change a record's key, so both keys are locked.
    return withKeysLockedThenReleased(db, [...seen, ...locked], () => work(db))
  })
}

const discardSql = decisionSql({
  allowed: `s.state in ('queued', 'failed', 'rejected', 'uncertain', 'accepted') and not ${isNewestWaitingVersionSql('s')}`,
  // A change that was not sent counts as sent from then on: the operator has told the service's owner. It does not if no version
  // of its document can have arrived.
  set: `state = 'discarded', held = false, due_at = null, ended_at = clock_timestamp(), changed_after_sent = false, foreign_status = null,
    may_have_arrived = f.was_sent or (f.changed_after_sent and (
      exists (select from outboxd.submission e where e.document = f.document and e.seq < f.seq and e.was_sent)
      or exists (select from outboxd.document d where d.id = f.document and d.sent_seq is not null)))`,
  cause: 'discarded',
  message: `'discarded: ' || $3::text`,
})

/** Stops the polls of accepted records. Error and transaction id stay. */
export async function discardSeenSubmissions(operator: Operator, seen: readonly SeenRecord[]): Promise<string[]> {
  const discarded = await withSubmissionsLocked(operator, seen, (db) =>
    writeDecisions(db, discardSql, seen, operator.actor),
  )
  return discarded.map(({ id }) => id)
}

export interface RecordOfKey {
  id: string
  outboxId: string
  type: string
  state: State
  revision: number
  reportDue: boolean
  mayBeErased: boolean
}

export const erasedRecordsMax = 100_000

export async function readRecordsOfKey(db: Database, key: string): Promise<RecordOfKey[]> {
  const { rows } = await db.query<RecordOfKey>(
    `select s.id, s.outbox_id as "outboxId", s.type, s.state, s.revision, s.report_due as "reportDue",
       (${mayBePrunedSql}) as "mayBeErased"
     from outboxd.submission s where ${hasKeySql('$1')} order by s.seq limit ${erasedRecordsMax}`,
    [key],
  )
  return rows
}

/**
 * Erases key, payload, body, result, error and the details of events. Times, states, ids, amounts and the request's
 * digest stay, so that an unchanged document is not sent again.
 */
export function eraseRecords(
  { ledger, actor }: Operator,
  records: readonly Pick<RecordOfKey, 'id' | 'revision'>[],
): Promise<string[]> {
  return inTransaction(ledger, async (db) => {
    const { rows } = await db.query<{ id: string }>(
      `with due as (
         select s.id from outboxd.submission s join unnest($1::uuid[], $2::int[]) r(id, revision) using (id)
         where s.revision = r.revision and ${mayBePrunedSql} and s.erased_at is null order by s.id for update of s
       ), erased as (
         update outboxd.submission s set key = null, payload = null, body = null, result = null, error = null,
           emptied_at = coalesce(emptied_at, clock_timestamp()), erased_at = clock_timestamp()
         from due where s.id = due.id returning s.id
       ), event as (
         update outboxd.submission_event e set message = null, detail = null
         from erased where e.submission_id = erased.id
       )
       select id from erased`,
      [records.map(({ id }) => id), records.map(({ revision }) => revision)],
    )
    const ids = rows.map(({ id }) => id)
    if (ids.length === 0) return []
    await logOperatorAct(db, actor, 'erase', { submissions: ids })
    return ids
  })
}
