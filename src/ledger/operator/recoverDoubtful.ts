import { randomUUID } from 'node:crypto'
import { boundText } from '../../boundText.ts'
import type { Database } from '../../postgres/database.ts'
import type { Resource } from '../../resources.ts'
import { isAsSeen } from '../history/writeHistory.ts'
import { inLines, type KeyOnFailure, lockSubmissions } from '../keyOrder.ts'
import type { Queue } from '../queue.ts'
import { lockTransactionIds, nameOf, readHolders, type TransactionRef } from '../transactions.ts'
import { type Actor, actorDetail } from './operator.ts'
import { pollsOf, resolveArrived, type SeenSubmission } from './resolveSubmission.ts'

/** A record that the ledger has as queued, or as not sent on, and that may have been sent. */
export interface DoubtfulRecord extends SeenSubmission {
  outboxId: string
  key: string | null
  resource: Resource
  /** Its row is in the outbox that the ledger serves now. */
  isServed: boolean
  /** It is not queued: only that its row names a transaction is news. */
  isOnlyByName: boolean
}

/** A doubtful record of which its row has said what became of it. */
export type SettledDoubt = DoubtfulRecord &
  (
    | { kind: 'arrived'; transactionId: string }
    /** @param why for the operator */
    | { kind: 'uncertain'; why: string }
  )

/** A transaction that a row names, and what the ledger knows of it. */
export interface NamedTransaction {
  id: string
  /** The record had it before, as the ledger knows: the row says nothing new. */
  isFormer: boolean
  /** The row of another submission that has it; null where none does. */
  heldBy: string | null
}

/** What the ledger knows of the transactions that rows name. */
export async function readNamed(
  db: Database,
  named: readonly (TransactionRef & { id: string })[],
): Promise<NamedTransaction[]> {
  const { rows } = await db.query<NamedTransaction>(
    `select r.id, exists (
         select from outboxd.submission_event e where e.submission_id = r.id
           and r."transactionId" in (e.detail ->> 'transactionId', e.detail -> 'former' ->> 'transactionId')
       ) or exists (
         select from outboxd.submission s where s.id = r.id and s.transaction_id = r."transactionId"
       ) as "isFormer", (
         select s.outbox_id from outboxd.submission s
         where s.transaction_id = r."transactionId" and s.resource = r.resource and s.id <> r.id order by s.seq limit 1
       ) as "heldBy"
     from json_to_recordset($1) as r(id uuid, resource text, "transactionId" text)`,
    [JSON.stringify(named)],
  )
  return rows
}

export const rowNamesAnothers = (transactionId: string, outboxId: string): string =>
  `its outbox row names transaction ${transactionId}, which outbox:${outboxId} has already`

/** @param what is known beside; null: nothing */
export const wentBack = (what: string | null): string =>
  `the ledger went back in time, and had this record as queued${what === null ? '' : `; ${what}`}: it may have arrived since`

/**
 * Takes doubtful records for what their rows say that they are. Nobody captures meanwhile, and nothing is sent, since what was found of the
 * ledger's history still stands. In a transaction. Safe to do twice.
 *
 * @param seenAtMs when that was found which a person has seen
 * @returns false where that has changed since
 */
export async function recoverDoubtful(
  db: Database,
  records: readonly SettledDoubt[],
  {
    seenAtMs,
    queue,
    actor,
    keyOnFailure,
  }: { seenAtMs: number; queue: Queue; actor: Actor; keyOnFailure: KeyOnFailure },
): Promise<boolean> {
  await db.query('select pg_advisory_xact_lock(7161)')
  if (!(await isAsSeen(db, seenAtMs))) return false
  const arrived = records.filter((record) => record.kind === 'arrived')
  await lockTransactionIds(db, arrived)
  await lockSubmissions(db, records)
  await inLines(db, records, keyOnFailure, async () => {
    const holders = new Map((await readHolders(db, arrived)).map((holder) => [nameOf(holder), holder.outboxId]))
    const isFree = (record: (typeof arrived)[number]) => !holders.has(nameOf(record))
    const written = await resolveArrived(
      db,
      arrived
        .filter(isFree)
        .map(({ id, revision, transactionId }) => ({ id, revision, transactionId, jobId: randomUUID() })),
      { how: 'recovered', actor },
    )
    await queue.insert(db, pollsOf(written))
    await writeUncertain(
      db,
      records.flatMap((record) => {
        const { id, revision } = record
        if (record.kind === 'uncertain') return [{ id, revision, error: record.why }]
        const holder = holders.get(nameOf(record))
        return holder === undefined
          ? []
          : [{ id, revision, error: wentBack(rowNamesAnothers(record.transactionId, holder)) }]
      }),
      actor,
    )
  })
  return true
}

async function writeUncertain(
  db: Database,
  records: readonly (SeenSubmission & { error: string })[],
  { who, reason, account }: Actor,
): Promise<void> {
  await db.query(
    `with taken as (
       update outboxd.submission s set ${uncertain('r.error')}
       from json_to_recordset($1) as r(id uuid, revision int, error text)
       where s.id = r.id and s.revision = r.revision and s.state = 'queued' returning s.id, s.attempt
     )
     insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
     select id, 'queued', 'uncertain', attempt, 'recovered as uncertain', $2, ${actorDetail('$3', '$4')} from taken`,
    [JSON.stringify(records.map((record) => ({ ...record, error: boundText(record.error) }))), who, reason, account],
  )
}

/** Sets what makes a queued submission `s` uncertain. @param error SQL */
export const uncertain = (error: string): string =>
  `state = 'uncertain', revision = s.revision + 1, in_doubt = true, due_at = null, held = false, error = ${error},
   ended_at = clock_timestamp(), report_due = true`
