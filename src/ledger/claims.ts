import type { Claim, ClaimedSubmission, ClaimRequest, Slot, Submission } from '../model.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import * as budget from './budget.ts'
import type { DataLossGuard } from './history/createDataLossGuard.ts'
import type { InstanceLedger } from './outcomes.ts'
import * as pauses from './pauses.ts'
import type { DuePoll } from './queue.ts'
import { resetColumnsByLifetimeSql, submissionColumnsSql } from './submissions.ts'

export type SubmissionClaimerDeps = Pick<
  InstanceLedger,
  'ledger' | 'queue' | 'instance' | 'requestsEndAfterMs' | 'trialLeaseMs'
> & {
  history: Pick<DataLossGuard, 'mayClaim' | 'rememberClaim'>
}

export type SubmissionClaimer = ReturnType<typeof createSubmissionClaimer>

export function createSubmissionClaimer(deps: SubmissionClaimerDeps) {
  /** Postgres transaction ids by claim id, while the COMMIT is unanswered. */
  const committing = new Map<string, string>()

  async function taking<T>(work: (db: Database) => Promise<T>, otherwise: T): Promise<T> {
    const take = async (db: Database) => ((await deps.history.mayClaim(db)) ? work(db) : otherwise)
    return inTransaction(deps.ledger, take, { mustSurviveFailover: true })
  }

  return {
    /**
     * @param onCommit called just before the COMMIT. If an error comes earlier, nothing was claimed.
     * @throws Error after that call if the COMMIT may have happened. Then call `requeueUnsentClaim`.
     */
    async claim(request: ClaimRequest, onCommit: (submissions: readonly Submission[]) => void): Promise<Claim> {
      const claimed = await taking(async (client) => {
        const taken = await claim(deps, client, request)
        const xid = taken.submissions[0]?.xid
        if (xid !== undefined) committing.set(request.id, xid)
        onCommit(taken.submissions)
        return taken
      }, nothing)
      const last = claimed.submissions.at(-1)
      if (last !== undefined) await deps.history.rememberClaim(last)
      committing.delete(request.id)
      return claimed
    },
    async requeueUnsentClaim(claimId: string): Promise<boolean> {
      const xid = committing.get(claimId)
      if (xid !== undefined && !(await isPostgresTransactionOver(deps.ledger, xid))) return false
      await requeueUnsentClaim(deps.ledger, claimId, deps.instance.who)
      committing.delete(claimId)
      return true
    },
    claimTrialRequest: (permits: number): Promise<Slot[] | null> =>
      taking((client) => claimTrialRequest(deps, client, permits), null),
    takeSlots: (permits: number): Promise<Slot[]> =>
      taking((client) => budget.takeSlots(client, permits, deps.requestsEndAfterMs, deps.instance.id), []),
  }
}

interface CommittedClaim extends Claim {
  submissions: CommittedSubmission[]
}

const nothing: CommittedClaim = { submissions: [], polls: [], slots: [], isFirstAfterTrial: false }

async function claim(deps: SubmissionClaimerDeps, db: Database, request: ClaimRequest): Promise<CommittedClaim> {
  const granted = await grant(deps, db, request)
  if (granted === null) return nothing
  const { permits } = granted
  const slots = permits > 0 ? await budget.takeSlots(db, permits, deps.requestsEndAfterMs, deps.instance.id) : []
  const claimed = await claimUpTo(deps, db, granted, slots)
  const isUnused = claimed.submissions.length === 0 && (granted.isFirstAfterTrial || claimed.polls.length === 0)
  if ((request.trial || granted.isFirstAfterTrial) && isUnused) await pauses.giveBackTrialRequest(db)
  return { ...claimed, slots, isFirstAfterTrial: granted.isFirstAfterTrial && !isUnused }
}

interface Grant extends ClaimRequest {
  isFirstAfterTrial: boolean
}

/** After a successful trial, records are sent one at a time until one has proven that the pauses are over. */
async function grant(
  { trialLeaseMs }: SubmissionClaimerDeps,
  db: Database,
  request: ClaimRequest,
): Promise<Grant | null> {
  if (request.trial)
    return (await pauses.claimTrialRequest(db, trialLeaseMs)) ? { ...request, isFirstAfterTrial: false } : null
  const sending = await pauses.readSendingState(db)
  if (sending === 'paused') return null
  if (sending === 'open' || request.submissions === 0) return { ...request, isFirstAfterTrial: false }
  const isFirstAfterTrial = await pauses.claimFirstRecordAfterTrial(db, trialLeaseMs)
  return { ...budget.limitToOneSubmission(request, isFirstAfterTrial), isFirstAfterTrial }
}

async function claimTrialRequest(
  { trialLeaseMs, requestsEndAfterMs, instance }: SubmissionClaimerDeps,
  db: Database,
  permits: number,
): Promise<Slot[] | null> {
  if (!(await pauses.claimTrialRequest(db, trialLeaseMs))) return null
  const slots = permits > 0 ? await budget.takeSlots(db, permits, requestsEndAfterMs, instance.id) : []
  if (permits > 0 && slots.length === 0) {
    await pauses.giveBackTrialRequest(db)
    return null
  }
  return slots
}

async function claimUpTo(deps: SubmissionClaimerDeps, db: Database, request: ClaimRequest, slots: Slot[]) {
  const permits = budget.sumPermitsInHandAndTaken(request, slots)
  const wanted = budget.countPermitsForSubmissions(request, permits)
  const { id: instanceId, who } = deps.instance
  const submissions =
    wanted > 0 ? await claimQueuedSubmissions(db, { id: request.id, instanceId, limit: wanted, who }) : []
  const left = permits - submissions.length
  const rare = await claimPolls(deps, db, { limit: Math.min(request.rarePolls, left), rarely: true })
  const others = await claimPolls(deps, db, { limit: Math.min(request.polls, left - rare.length), rarely: false })
  return { submissions, polls: [...others, ...rare] }
}

async function claimPolls(
  { queue }: SubmissionClaimerDeps,
  db: Database,
  { limit, rarely }: { limit: number; rarely: boolean },
): Promise<Claim['polls']> {
  const due = limit > 0 ? await queue.fetch(db, limit, rarely) : []
  if (due.length === 0) return []
  const submissions = await readPolledSubmissions(db, due)
  const byJob = new Map(submissions.map((submission) => [submission.jobId, submission]))
  const stale = due.flatMap(({ job }) => (byJob.has(job.id) ? [] : [job]))
  if (stale.length > 0) await queue.complete(db, stale)
  return due.flatMap(({ job }) => {
    const submission = byJob.get(job.id)
    return submission ? [{ submission, job }] : []
  })
}

export interface CommittedSubmission extends ClaimedSubmission {
  /** Postgres transaction id for `isPostgresTransactionOver`, in case the answer to the COMMIT is lost. */
  xid: string
}

/** Makes up to `limit` due submissions `sending`. The caller sends them only after the COMMIT. */
export async function claimQueuedSubmissions(
  db: Database,
  claim: { id: string; instanceId: string; limit: number; who: string },
): Promise<CommittedSubmission[]> {
  const { rows } = await db.query<CommittedSubmission>(
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
     select ${submissionColumnsSql}, s.waited_ms as "waitedMs", pg_current_xact_id()::text as xid from s order by s.seq`,
    [claim.id, claim.instanceId, claim.limit, claim.who],
  )
  return rows
}

/**
 * True if the transaction was committed or rolled back. Also true if the server does not know the transaction, because
 * it is old or was lost in a failover.
 */
export async function isPostgresTransactionOver(db: Database, xid: string): Promise<boolean> {
  try {
    const { rows } = await db.query<{ status: string | null }>('select pg_xact_status($1::xid8) as status', [xid])
    return rows[0]?.status !== 'in progress'
  } catch (error) {
    if (errorCodeOf(error) === transactionInFuture) return true
    throw error
  }
}

/** invalid_parameter_value: "transaction ID … is in the future". */
const transactionInFuture = '22023'

/**
 * Queues the records of a claim again that were never sent, because the COMMIT was answered too late or not at all.
 * Includes records that another instance has made uncertain: a second statement, because the first one may wait until
 * that instance commits.
 */
export async function requeueUnsentClaim(db: Database, claimId: string, who: string): Promise<void> {
  for (const requeueSql of [requeueSendingSql, requeueUncertainSql])
    await db.query(
      `with given as (${requeueSql})
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
       select id, from_state, 'queued', attempt, 'never sent: the claim was lost', $2 from given`,
      [claimId, who],
    )
}

const requeueSendingSql = `
  update outboxd.submission set state = 'queued', revision = revision + 1, due_at = now(), claim_id = null,
    instance_id = null
  where claim_id = $1 and state = 'sending' returning id, 'sending' as from_state, attempt`

const requeueUncertainSql = `
  update outboxd.submission s set state = 'queued', revision = revision + 1, due_at = now(), ended_at = null,
    ${resetColumnsByLifetimeSql('step')}, report_due = true
  where state = 'uncertain' and exists (
    select from outboxd.submission_event e where e.submission_id = s.id and e.attempt = s.attempt
      and e.to_state = 'uncertain' and e.detail ->> 'claim' = $1::text
  ) returning id, 'uncertain' as from_state, attempt`

async function readPolledSubmissions(db: Database, polls: readonly DuePoll[]): Promise<Submission[]> {
  const { rows } = await db.query<Submission>(
    `select ${submissionColumnsSql} from outboxd.submission s
     join unnest($1::uuid[], $2::uuid[]) poll(id, job_id) on s.id = poll.id and s.job_id = poll.job_id`,
    [polls.map(({ submissionId }) => submissionId), polls.map(({ job }) => job.id)],
  )
  return rows
}
