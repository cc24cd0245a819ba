import type { ClaimedSubmission, Submission } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { codeOf } from '../postgres/sqlState.ts'
import type { DuePoll } from './queue.ts'
import { forgotten } from './submissionColumns.ts'
import { parseSubmissions, submissionColumns } from './submissionRow.ts'

export interface CommittedSubmission extends ClaimedSubmission {
  /** The transaction that claimed it: what became of it can be asked where the answer to its COMMIT is lost. */
  xid: string
}

/**
 * Takes up to `limit` submissions whose turn it is and commits them to the wire: state `sending`, the next attempt,
 * under this claim. The caller sends only after its transaction has committed.
 */
export async function claimQueued(
  db: Database,
  claim: { id: string; instanceId: string; limit: number; who: string },
): Promise<CommittedSubmission[]> {
  const { rows } = await db.query<{ waitedMs: number; xid: string }>(
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
       -- The digest goes into the logs' chain, so that a body that is changed later is noticed.
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
       select id, 'queued', 'sending', attempt, 'slot', $4, jsonb_build_object('bodySha256', encode(sha256(convert_to(body, 'UTF8')), 'hex'))
       from s order by seq
     )
     select ${submissionColumns}, s.waited_ms as "waitedMs", pg_current_xact_id()::text as xid from s order by s.seq`,
    [claim.id, claim.instanceId, claim.limit, claim.who],
  )
  return parseSubmissions(rows).map((submission, i) => ({
    ...submission,
    waitedMs: rows[i]?.waitedMs ?? 0,
    xid: rows[i]?.xid ?? '',
  }))
}

/**
 * Whether a transaction has come to its end: neither a COMMIT that hangs nor a session that lingers may still make it
 * true. One that the server knows nothing of is over: it is long ago, or of a server that was lost in a failover.
 */
export async function isOver(db: Database, xid: string): Promise<boolean> {
  try {
    const { rows } = await db.query<{ status: string | null }>('select pg_xact_status($1::xid8) as status', [xid])
    return rows[0]?.status !== 'in progress'
  } catch (error) {
    if (codeOf(error) === transactionInFuture) return true
    throw error
  }
}

/** SQLSTATE invalid_parameter_value: "transaction ID … is in the future". */
const transactionInFuture = '22023'

/**
 * Gives back what a claim took that was never sent: its COMMIT went unanswered, or came true too late. Also what
 * another instance has put in doubt since, when this one was silent: its owner knows better.
 */
export async function unclaim(db: Database, claimId: string, who: string): Promise<void> {
  await db.query(
    `with back as (
       update outboxd.submission set state = 'queued', revision = revision + 1, due_at = now(), claim_id = null,
         instance_id = null
       where claim_id = $1 and state = 'sending' returning id, 'sending' as from_state, attempt
     ), cleared as (
       update outboxd.submission s set state = 'queued', revision = revision + 1, due_at = now(), ended_at = null,
         ${forgotten('step')}, report_due = true
       where state = 'uncertain' and exists (
         select from outboxd.submission_event e where e.submission_id = s.id and e.attempt = s.attempt
           and e.to_state = 'uncertain' and e.detail ->> 'claim' = $1::text
       ) returning id, 'uncertain' as from_state, attempt
     )
     insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
     select id, from_state, 'queued', attempt, 'never sent: the claim was lost', $2
     from (select * from back union all select * from cleared) given`,
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
