import { randomUUID } from 'node:crypto'
import { exactJsonFields } from '../../boundText.ts'
import type { Database } from '../../postgres/database.ts'
import type { Queue } from '../queue.ts'
import { resetColumnsSql } from '../submissions.ts'
import { type Holder, readOtherTransactionHolder, type TransactionRef } from '../transactions.ts'
import {
  type Actor,
  actorDetailSql,
  type Operator,
  type SeenRecord,
  withOpenQueue,
  withSubmissionsLocked,
} from './operator.ts'
import { keepsIdempotencyKeySql } from './replaySubmissions.ts'

export type SeenSubmission = Pick<SeenRecord, 'id' | 'revision'>

export type ArrivalSettled =
  | { kind: 'settled'; tracked: boolean }
  /** Another submission has the transaction. */
  | { kind: 'taken'; by: Holder }
  /** The submission took a step since, or nothing is in doubt. */
  | { kind: 'changed' }

/** Called when the operator says that the record arrived. The record is polled at once. */
export function resolveAsArrived(
  operator: Operator,
  seen: SeenRecord,
  transaction: TransactionRef,
): Promise<ArrivalSettled> {
  const settle =
    (queue: Queue) =>
    async (db: Database): Promise<ArrivalSettled> => {
      const by = await readOtherTransactionHolder(db, transaction, seen.id)
      if (by) return { kind: 'taken', by }
      const { id, revision } = seen
      const arrival = { id, revision, transactionId: transaction.transactionId, jobId: randomUUID() }
      const [settled] = await settleArrivedRecords(db, [arrival], { how: 'resolved', actor: operator.actor })
      if (settled === undefined) return { kind: 'changed' }
      if (settled.formerJobId) await queue.remove(db, [settled.formerJobId])
      await queue.insert(db, firstPollsOfArrived([settled]))
      return { kind: 'settled', tracked: settled.tracked }
    }
  return withOpenQueue(operator, (queue) => withSubmissionsLocked(operator, [seen], settle(queue), [transaction]))
}

/** Called when the operator says that the record did not arrive. The record is sent again. */
export function resolveAsNotArrived(
  operator: Operator,
  seen: SeenRecord,
  newKey: boolean,
): Promise<{ keptKey: boolean } | null> {
  const terms = { idempotencyKey: randomUUID(), newKey, actor: operator.actor }
  return withOpenQueue(operator, (queue) =>
    withSubmissionsLocked(operator, [seen], async (db) => {
      const settled = await resolveNotArrived(db, seen, terms)
      if (settled?.formerJobId) await queue.remove(db, [settled.formerJobId])
      return settled
    }),
  )
}

/**
 * Takes back an id that an operator gave.
 * @returns false if no operator gave one, or the record took a step since
 */
export function takeBackGivenTransactionId(operator: Operator, seen: SeenRecord): Promise<boolean> {
  return withOpenQueue(operator, (queue) =>
    withSubmissionsLocked(operator, [seen], async (db) => {
      const taken = await takeBack(db, seen, operator.actor)
      if (taken?.formerJobId) await queue.remove(db, [taken.formerJobId])
      return taken !== null
    }),
  )
}

/**
 * True if an operator may settle it. Includes ends under an id that an operator gave, because that id may be another
 * record's.
 */
const settleableSql = `s.emptied_at is null and (
  s.state = 'uncertain' or s.probing or (s.may_have_arrived and s.state in ('failed', 'rejected') and s.body is not null)
  or (s.state = 'accepted' and s.not_done_ms is null) or (s.state in ('accepted', 'completed', 'failed') and s.id_by_person)
)`

/** The record, and its poll that must be removed. */
export interface Settled {
  tracked: boolean
  formerJobId: string | null
}

const former = `former as (
  select s.* from outboxd.submission s where s.id = $1 and s.revision = $2 and ${settleableSql} for update
)`

const formerDetail = `'former', jsonb_strip_nulls(jsonb_build_object('code', f.error_code, 'error', f.error,
  'transactionId', f.transaction_id, 'idempotencyKey', case when f.idempotency_key <> w.idempotency_key then f.idempotency_key end))`

export interface Arrival extends SeenSubmission {
  transactionId: string
  /** For its first poll. */
  jobId: string
}

/**
 * Tracks arrived records, or completes untracked ones. Their age counts from sending, so that the late poll does not
 * teach that processing is quick.
 */
export async function settleArrivedRecords(
  db: Database,
  arrivals: readonly Arrival[],
  { how, actor }: { how: 'resolved' | 'recovered'; actor: Actor },
): Promise<(Arrival & Settled)[]> {
  const { rows } = await db.query<{ id: string } & Settled>(
    `with arrival as (
       select * from json_to_recordset($1) as r(id uuid, revision int, "transactionId" text, "jobId" uuid)
     ), former as (
       select s.* from outboxd.submission s join arrival a on a.id = s.id and a.revision = s.revision
       where ${settleableSql} or ($2 = 'recovered' and s.state in ('queued', 'sending', 'failed', 'rejected')) order by s.id for update of s
     ), written as (
       update outboxd.submission s set
         state = case when s.tracked then 'accepted' else 'completed' end, revision = s.revision + 1,
         transaction_id = a."transactionId", id_by_person = true, in_doubt = true, ${resetColumnsSql('transaction')},
         held = false, probing = false, due_at = null, claim_id = null, instance_id = null, accepted_at = coalesce(s.sent_at, clock_timestamp()),
         job_id = case when s.tracked then a."jobId" end, poll_at = case when s.tracked then clock_timestamp() end,
         ended_at = case when not s.tracked then clock_timestamp() end, report_due = true
       from former f join arrival a using (id) where s.id = f.id returning s.*
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
       select w.id, f.state, w.state, w.attempt, $2 || ': arrived as ' || w.transaction_id, $3,
         jsonb_build_object('transactionId', w.transaction_id, ${formerDetail}) || ${actorDetailSql('$4', '$5')}
       from written w join former f using (id)
     )
     select w.id, w.tracked, f.job_id as "formerJobId" from written w join former f using (id)`,
    [JSON.stringify(arrivals.map(exactJsonFields)), how, actor.who, actor.reason, actor.account],
  )
  const written = new Map(rows.map((row) => [row.id, row]))
  return arrivals.flatMap((arrival) => {
    const settled = written.get(arrival.id)
    return settled === undefined ? [] : [{ ...arrival, ...settled }]
  })
}

/**
 * Queues the record again. Keeps the attempt in doubt and the idempotency key (see `writeReplayedSubmissions`), because operators
 * err.
 */
async function resolveNotArrived(
  db: Database,
  { id, revision }: SeenSubmission,
  { idempotencyKey, newKey, actor }: { idempotencyKey: string; newKey: boolean; actor: Actor },
): Promise<(Settled & { keptKey: boolean }) | null> {
  const { rows } = await db.query<Settled & { keptKey: boolean }>(
    `with ${former}, written as (
       update outboxd.submission s set
         state = 'queued', revision = s.revision + 1, probing = false, held = s.key is not null, due_at = clock_timestamp(),
         idempotency_key = case when ${keepsIdempotencyKeySql('f')} and not $4::boolean then s.idempotency_key else $3 end,
         in_doubt = true, transaction_id = null, id_by_person = false, ${resetColumnsSql('start')},
         accepted_at = null, job_id = null, poll_at = null, ended_at = null, report_due = true
       from former f where s.id = f.id returning s.*
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
       select w.id, f.state, 'queued', w.attempt, 'resolved: not arrived', $5,
         jsonb_build_object(${formerDetail}) || ${actorDetailSql('$6', '$7')}
       from written w join former f using (id)
     )
     select w.tracked, f.job_id as "formerJobId", w.idempotency_key = f.idempotency_key as "keptKey"
     from written w join former f using (id)`,
    [id, revision, idempotencyKey, newKey, actor.who, actor.reason, actor.account],
  )
  return rows[0] ?? null
}

/** Makes the record uncertain again and frees the id. */
async function takeBack(db: Database, { id, revision }: SeenSubmission, actor: Actor): Promise<Settled | null> {
  const { rows } = await db.query<Settled>(
    `with former as (
       select s.* from outboxd.submission s where s.id = $1 and s.revision = $2 and s.id_by_person and s.emptied_at is null for update
     ), written as (
       update outboxd.submission s set
         state = 'uncertain', revision = s.revision + 1, in_doubt = true, transaction_id = null, id_by_person = false,
         ${resetColumnsSql('transaction', { error: takenBackSql })},
         accepted_at = null, job_id = null, poll_at = null, ended_at = clock_timestamp(), report_due = true
       from former f where s.id = f.id returning s.*
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
       select w.id, f.state, 'uncertain', w.attempt, 'resolved: taken back that it is ' || f.transaction_id, $3,
         jsonb_build_object(${formerDetail}) || ${actorDetailSql('$4', '$5')}
       from written w join former f using (id)
     )
     select w.tracked, f.job_id as "formerJobId" from written w join former f using (id)`,
    [id, revision, actor.who, actor.reason, actor.account],
  )
  return rows[0] ?? null
}

const takenBackSql = "'an operator withdrew the transaction id that had been given for it. It may still have arrived'"

export const firstPollsOfArrived = (arrived: readonly { id: string; jobId: string; tracked: boolean }[]) =>
  arrived.filter(({ tracked }) => tracked).map(({ id, jobId }) => ({ jobId, submissionId: id, inMs: 0, rarely: false }))
