import type { Database } from '../../postgres/database.ts'
import { agreeByPerson, clocksDifferBy, isAsSeen } from '../history/writeHistory.ts'
import { epochMs } from '../times.ts'
import { type Actor, actorDetail, logAct } from './acts.ts'

/** What a person takes records for that may have been sent. */
export type RecoveredAs = 'uncertain' | 'new'

/** What the ledger itself has that may have been sent. Times in epoch milliseconds. */
export interface DoubtfulRecords {
  queued: number
  /** When the first and the last of them were recorded; null where there are none. */
  oldestMs: number | null
  newestMs: number | null
  /** Of these it does not know whether they failed since, and were sent again. */
  accepted: number
}

/** What was queued when the history was found to be another: nobody knows how long it had been so, or what had become of it. */
const isDoubtful = `s.state = 'queued'
  and (s.captured_at <= h.found_at or s.recorded_at <= h.found_at + ${clocksDifferBy})`

export async function readDoubtful(db: Database): Promise<DoubtfulRecords> {
  const { rows } = await db.query<DoubtfulRecords>(
    `select count(*)::int as queued, ${epochMs('min(s.recorded_at)')} as "oldestMs",
       ${epochMs('max(s.recorded_at)')} as "newestMs",
       (select count(*)::int from outboxd.submission where state = 'accepted') as accepted
     from outboxd.history h join outboxd.submission s on ${isDoubtful}`,
  )
  return rows[0] as DoubtfulRecords
}

/** How a person goes on. */
export interface RecoveryTerms {
  as: RecoveredAs
  /** When it was found what he saw. */
  seenAtMs: number
  /** Rows that wait and were recorded before that may have been sent, too. */
  isOutboxInDoubt: boolean
}

/** What came of it. */
export interface Recovered {
  queued: number
}

/**
 * Takes what was queued for what the person says it is, and agrees to the history as it is now, so that everybody goes on. In a
 * transaction, within which nobody captures.
 *
 * Sent again, a record keeps its idempotency key and an attempt in doubt: a service that recognises keys answers with E002, and it
 * becomes uncertain. What is accepted may have failed and been sent again: it is not sent again by itself.
 *
 * @returns null where what was seen has changed since
 */
export async function recoverHistory(
  db: Database,
  { as, seenAtMs, isOutboxInDoubt }: RecoveryTerms,
  actor: Actor,
): Promise<Recovered | null> {
  await db.query('select pg_advisory_xact_lock(7161)')
  if (!(await isAsSeen(db, seenAtMs))) return null
  const queued = await takeQueued(db, as, actor)
  await db.query(
    `update outboxd.submission set in_doubt = true, resubmissions = greatest(resubmissions, 3) where state = 'accepted'`,
  )
  await agreeByPerson(db, actor.who, as === 'uncertain' && isOutboxInDoubt)
  await logAct(db, actor, 'recover', { as, queued, isOutboxInDoubt })
  return { queued }
}

async function takeQueued(db: Database, as: RecoveredAs, actor: Actor): Promise<number> {
  const { rowCount } = await db.query(
    `with doubtful as (
       select s.id from outboxd.history h join outboxd.submission s on ${isDoubtful} order by s.seq for update of s
     ), taken as (
       update outboxd.submission s set in_doubt = true, revision = s.revision + 1,
         state = case when $1 = 'uncertain' then 'uncertain' else 'queued' end,
         due_at = case when $1 = 'uncertain' then null else s.due_at end, held = $1 <> 'uncertain' and s.held,
         error = case when $1 = 'uncertain' then $2 else s.error end,
         ended_at = case when $1 = 'uncertain' then clock_timestamp() end, report_due = $1 = 'uncertain' or s.report_due
       from doubtful where s.id = doubtful.id returning s.id, s.state, s.attempt
     )
     insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
     select id, 'queued', state, attempt, 'recovered as ' || $1, $3, ${actorDetail('$4', '$5')} from taken`,
    [as, queuedDoubt, actor.who, actor.reason, actor.account],
  )
  return rowCount ?? 0
}

const queuedDoubt = 'the ledger went back in time, and had this record as queued: it may have arrived since'
