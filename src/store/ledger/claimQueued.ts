import type { Submission } from '../../record.ts'
import type { Database } from '../database.ts'
import type { DuePoll } from '../queue.ts'
import { parseSubmissions, submissionColumns } from './submissionRow.ts'

export interface ClaimedSubmission extends Submission {
  /** How long it was ready before it got its slot. */
  waitedMs: number
}

/**
 * Takes up to `limit` submissions whose turn it is and commits them to the wire: state `sending`, the next attempt,
 * under this claim. The caller sends only after its transaction has committed.
 */
export async function claimQueued(
  db: Database,
  claim: { id: string; instanceId: string; limit: number; who: string },
): Promise<ClaimedSubmission[]> {
  const { rows } = await db.query<{ waitedMs: number }>(
    `with ready as (
       select id, due_at from outboxd.submission
       where state = 'queued' and not held and due_at <= clock_timestamp()
       order by due_at, seq limit $3 for update skip locked
     ), s as (
       update outboxd.submission s set state = 'sending', revision = revision + 1, due_at = null, attempt = attempt + 1,
         claim_id = $1, instance_id = $2, sent_at = clock_timestamp()
       from ready where s.id = ready.id
       returning s.*, extract(epoch from clock_timestamp() - ready.due_at)::float8 * 1000 as waited_ms
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
       select id, 'queued', 'sending', attempt, 'slot', $4 from s order by seq
     )
     select ${submissionColumns}, s.waited_ms as "waitedMs" from s order by s.seq`,
    [claim.id, claim.instanceId, claim.limit, claim.who],
  )
  return parseSubmissions(rows).map((submission, i) => ({ ...submission, waitedMs: rows[i]?.waitedMs ?? 0 }))
}

/** Gives back what a claim took whose COMMIT went unanswered: nothing of it was sent. */
export async function unclaim(db: Database, claimId: string, who: string): Promise<void> {
  await db.query(
    `with back as (
       update outboxd.submission set state = 'queued', revision = revision + 1, due_at = now(), claim_id = null,
         instance_id = null
       where claim_id = $1 and state = 'sending' returning id, attempt
     )
     insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
     select id, 'sending', 'queued', attempt, 'never sent: the claim was lost', $2 from back`,
    [claimId, who],
  )
}

/** The accepted or probing submissions of polls in hand: found by their key, each only while the job is still its own. */
export async function readPolled(db: Database, polls: readonly DuePoll[]): Promise<Submission[]> {
  const { rows } = await db.query(
    `select ${submissionColumns} from outboxd.submission s
     join unnest($1::uuid[], $2::uuid[]) poll(id, job_id) on s.id = poll.id and s.job_id = poll.job_id`,
    [polls.map(({ submissionId }) => submissionId), polls.map(({ job }) => job.id)],
  )
  return parseSubmissions(rows)
}
