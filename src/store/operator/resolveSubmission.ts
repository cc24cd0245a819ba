import type { Database } from '../database.ts'

/** An uncertain submission, as it was read. */
export interface UncertainSubmission {
  id: string
  revision: number
}

/**
 * An operator knows that it arrived: it is tracked from here on, or complete where its mapping does not track.
 * Its age counts from when it was sent, so that a late poll does not teach that processing is quick.
 *
 * @param jobId the poll to come
 * @returns whether it is tracked; null where it is no longer uncertain, or took a step since it was read
 */
export async function resolveArrived(
  db: Database,
  { id, revision }: UncertainSubmission,
  { transactionId, jobId, who }: { transactionId: string; jobId: string; who: string },
): Promise<{ tracked: boolean; key: string | null } | null> {
  const { rows } = await db.query<{ tracked: boolean; key: string | null }>(
    `with former as (
       select * from outboxd.submission where id = $1 and revision = $2 and state = 'uncertain' for update
     ), written as (
       update outboxd.submission s set
         state = case when s.tracked then 'accepted' else 'completed' end, revision = s.revision + 1,
         transaction_id = $3, accepted_at = coalesce(s.sent_at, clock_timestamp()),
         job_id = case when s.tracked then $4::uuid end, poll_at = case when s.tracked then clock_timestamp() end,
         ended_at = case when not s.tracked then clock_timestamp() end, in_doubt = false, repeated_after_401 = false,
         polls = 0, fruitless = 0, unknown_since = null, not_done_ms = null, done_ms = null, error_code = null,
         error = null, report_due = true
       from former f where s.id = f.id returning s.id, s.state, s.attempt, s.tracked, s.key
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
       select w.id, 'uncertain', w.state, w.attempt, 'resolved: arrived as ' || $3, $5, jsonb_strip_nulls(
         jsonb_build_object('transactionId', $3::text, 'former',
           jsonb_build_object('code', f.error_code, 'error', f.error)))
       from written w join former f using (id)
     )
     select tracked, key from written`,
    [id, revision, transactionId, jobId, who],
  )
  return rows[0] ?? null
}

/**
 * An operator knows that it never arrived: it is queued again under a new idempotency key, and held where it has a key,
 * for `releaseHeads` to let go.
 *
 * @returns null where it is no longer uncertain, or took a step since it was read
 */
export async function resolveNotArrived(
  db: Database,
  { id, revision }: UncertainSubmission,
  { idempotencyKey, who }: { idempotencyKey: string; who: string },
): Promise<{ key: string | null } | null> {
  const { rows } = await db.query<{ key: string | null }>(
    `with former as (
       select * from outboxd.submission where id = $1 and revision = $2 and state = 'uncertain' for update
     ), written as (
       update outboxd.submission s set
         state = 'queued', revision = s.revision + 1, held = s.key is not null, due_at = clock_timestamp(),
         idempotency_key = $3, in_doubt = false, server_errors = 0, renewed_keys = 0, resubmissions = 0,
         repeated_after_401 = false, transaction_id = null, accepted_at = null, polls = 0, fruitless = 0,
         unknown_since = null, not_done_ms = null, done_ms = null, error_code = null, error = null, ended_at = null,
         report_due = true
       from former f where s.id = f.id returning s.id, s.attempt, s.key
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
       select w.id, 'uncertain', 'queued', w.attempt, 'resolved: not arrived', $4, jsonb_build_object('former',
         jsonb_strip_nulls(jsonb_build_object('code', f.error_code, 'error', f.error,
           'transactionId', f.transaction_id, 'idempotencyKey', f.idempotency_key)))
       from written w join former f using (id)
     )
     select key from written`,
    [id, revision, idempotencyKey, who],
  )
  return rows[0] ?? null
}
