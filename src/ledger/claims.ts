import type { Clock } from '../clock.ts'
import type {
  Claim,
  ClaimedPoll,
  ClaimedRequest,
  ClaimedSubmission,
  ClaimRequest,
  RequestPurpose,
  Submission,
} from '../model.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import { sendDeadlineMs } from '../requestDurations.ts'
import { beginClaimSql, countFreeForSubmissions, insertRequests, lockBudget } from './budget.ts'
import type { DataLossGuard } from './history/createDataLossGuard.ts'
import type { InstanceLedger } from './outcomes.ts'
import * as pauses from './pauses.ts'
import type { DuePoll } from './queue.ts'
import { resetColumnsByLifetimeSql, submissionColumnsSql } from './submissions.ts'

export type SubmissionClaimerDeps = Pick<
  InstanceLedger,
  'ledger' | 'queue' | 'instance' | 'requestOverAfterMs' | 'trialLostAfterMs'
> & {
  history: Pick<DataLossGuard, 'mayClaim' | 'rememberClaim'>
  clock: Pick<Clock, 'stopwatch'>
}

export type SubmissionClaimer = ReturnType<typeof createSubmissionClaimer>

/**
 * Claims records, polls and requests. Each claim is one transaction. It takes its locks in this order:
 *
 *     outboxd.ledger   waits for an instance that claims, 2 s at most if that one stops
 *     pauses           waits for an instance that raises or ends one
 *     records, polls   skips those that are locked
 *
 * Bodies are read after the COMMIT: a process that stopped while it received megabytes would hold the locks for ever,
 * because Postgres does not end a session that waits for its client.
 */
export function createSubmissionClaimer(deps: SubmissionClaimerDeps) {
  /** Postgres transaction ids by claim id, while the COMMIT is unanswered. */
  const committing = new Map<string, string>()

  async function taking<T>(work: (db: Database) => Promise<T>, otherwise: T): Promise<T> {
    const take = async (db: Database) => ((await deps.history.mayClaim(db)) ? work(db) : otherwise)
    return inTransaction(deps.ledger, take, { mustSurviveFailover: true, openingSql: beginClaimSql })
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
      const submissions = await withBodies(deps.ledger, request.id, claimed.submissions)
      committing.delete(request.id)
      return { ...claimed, submissions }
    },
    async requeueUnsentClaim(claimId: string): Promise<boolean> {
      const xid = committing.get(claimId)
      if (xid !== undefined && !(await isPostgresTransactionOver(deps.ledger, xid))) return false
      await requeueUnsentClaim(deps.ledger, claimId, deps.instance.who)
      committing.delete(claimId)
      return true
    },
    /** @returns null if another instance has the trial, or no request is free */
    claimTrialRequest: (): Promise<ClaimedRequest | null> => taking((client) => claimTrialRequest(deps, client), null),
    /** @returns null if fewer than `freeMin` requests are free */
    claimTokenRequest: (freeMin: number): Promise<ClaimedRequest | null> =>
      taking(
        async (client) => ((await lockBudget(client)) < freeMin ? null : insertRequest(deps, client, 'token')),
        null,
      ),
  }
}

interface CommittedClaim extends Omit<Claim, 'submissions'> {
  submissions: CommittedSubmission[]
}

const nothing: CommittedClaim = { submissions: [], polls: [], mayLeave: () => false, isFirstAfterTrial: false }

async function claim(deps: SubmissionClaimerDeps, db: Database, request: ClaimRequest): Promise<CommittedClaim> {
  const free = await lockBudget(db)
  if (free === 0) return nothing
  const granted = await grant(deps, db, request)
  if (granted === null) return nothing
  const { submissions, polls } = await claimUpTo(deps, db, granted, free)
  const isUnused = submissions.length === 0 && (granted.isFirstAfterTrial || polls.length === 0)
  if ((request.trial || granted.isFirstAfterTrial) && isUnused) await pauses.giveBackTrialRequest(db)
  const { ids, mayLeave } = await insertClaimedRequests(deps, db, [
    ...submissions.map(() => 'submission' as const),
    ...polls.map(() => 'poll' as const),
  ])
  return {
    submissions: submissions.map((each, nth) => ({ ...each, requestId: ids[nth] as string })),
    polls: polls.map((each, nth) => ({ ...each, requestId: ids[submissions.length + nth] as string })),
    mayLeave,
    isFirstAfterTrial: granted.isFirstAfterTrial && !isUnused,
  }
}

interface Grant extends ClaimRequest {
  isFirstAfterTrial: boolean
}

/** After a successful trial, records are sent one at a time until one has proven that the pauses are over. */
async function grant(
  { trialLostAfterMs }: SubmissionClaimerDeps,
  db: Database,
  request: ClaimRequest,
): Promise<Grant | null> {
  if (request.trial)
    return (await pauses.claimTrialRequest(db, trialLostAfterMs)) ? { ...request, isFirstAfterTrial: false } : null
  const sending = await pauses.readSendingState(db)
  if (sending === 'paused') return null
  if (sending === 'open' || request.submissions === 0) return { ...request, isFirstAfterTrial: false }
  const isFirstAfterTrial = await pauses.claimFirstRecordAfterTrial(db, trialLostAfterMs)
  return { ...request, submissions: isFirstAfterTrial ? 1 : 0, isFirstAfterTrial }
}

async function claimTrialRequest(deps: SubmissionClaimerDeps, db: Database): Promise<ClaimedRequest | null> {
  if ((await lockBudget(db)) === 0) return null
  return (await pauses.claimTrialRequest(db, deps.trialLostAfterMs)) ? insertRequest(deps, db, 'question') : null
}

async function insertRequest(
  deps: SubmissionClaimerDeps,
  db: Database,
  purpose: RequestPurpose,
): Promise<ClaimedRequest> {
  const { ids, mayLeave } = await insertClaimedRequests(deps, db, [purpose])
  return { requestId: ids[0] as string, mayLeave }
}

/** The deadline begins before the insert, so that no request leaves after the time that its row allows. */
async function insertClaimedRequests(
  { instance, requestOverAfterMs, clock }: SubmissionClaimerDeps,
  db: Database,
  purposes: readonly RequestPurpose[],
): Promise<{ ids: string[]; mayLeave: () => boolean }> {
  const ageMs = clock.stopwatch()
  const mayLeave = () => ageMs() < sendDeadlineMs
  if (purposes.length === 0) return { ids: [], mayLeave }
  const ids = await insertRequests(db, { instanceId: instance.id, overAfterMs: requestOverAfterMs }, purposes)
  return { ids, mayLeave }
}

async function claimUpTo(deps: SubmissionClaimerDeps, db: Database, request: ClaimRequest, free: number) {
  const wanted = countFreeForSubmissions(request, free)
  const { id: instanceId, who } = deps.instance
  const submissions =
    wanted > 0 ? await claimQueuedSubmissions(db, { id: request.id, instanceId, limit: wanted, who }) : []
  const left = free - submissions.length
  const rare = await claimPolls(deps, db, { limit: Math.min(request.rarePolls, left), rarely: true })
  const others = await claimPolls(deps, db, { limit: Math.min(request.polls, left - rare.length), rarely: false })
  return { submissions, polls: [...others, ...rare] }
}

async function claimPolls(
  { queue }: SubmissionClaimerDeps,
  db: Database,
  { limit, rarely }: { limit: number; rarely: boolean },
): Promise<Omit<ClaimedPoll, 'requestId'>[]> {
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

interface CommittedSubmission extends Omit<ClaimedSubmission, 'body'> {
  /** Postgres transaction id for `isPostgresTransactionOver`, in case the answer to the COMMIT is lost. */
  xid: string
}

/** Makes up to `limit` due submissions `sending`. The caller sends them only after the COMMIT. */
export async function claimQueuedSubmissions(
  db: Database,
  claim: { id: string; instanceId: string; limit: number; who: string },
): Promise<Omit<CommittedSubmission, 'requestId'>[]> {
  const { rows } = await db.query<Omit<CommittedSubmission, 'requestId'>>(
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
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, actor, who)
       select id, 'queued', 'sending', attempt, 'claimed', 'daemon', $4 from s order by seq
     )
     select ${submissionColumnsSql}, s.waited_ms as "waitedMs", pg_current_xact_id()::text as xid from s order by s.seq`,
    [claim.id, claim.instanceId, claim.limit, claim.who],
  )
  return rows
}

/** @throws Error if another instance has settled a record since the COMMIT */
async function withBodies(
  db: Database,
  claimId: string,
  submissions: readonly CommittedSubmission[],
): Promise<ClaimedSubmission[]> {
  if (submissions.length === 0) return []
  const { rows } = await db.query<{ id: string; body: string }>(
    `select id, body from outboxd.submission where id = any($1::uuid[]) and state = 'sending' and claim_id = $2`,
    [submissions.map(({ id }) => id), claimId],
  )
  const bodies = new Map(rows.map(({ id, body }) => [id, body]))
  return submissions.map((submission) => {
    const body = bodies.get(submission.id)
    if (body === undefined) throw new Error('another instance has settled a record of the claim')
    return { ...submission, body }
  })
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
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, message, actor, who)
       select id, from_state, 'queued', attempt, 'never_sent', 'never sent: the claim was lost', 'daemon', $2 from given`,
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
