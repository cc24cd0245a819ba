import type { Clock } from '../clock.ts'
import { lostTrialAnswer } from '../model/breaker.ts'
import type { Claim, ClaimedRequest, ClaimedSubmission, ClaimRequest, RequestPurpose } from '../model/dispatch.ts'
import type { Submission } from '../model/submission.ts'
import { beginTransaction, type Database, inTransaction } from '../postgres/database.ts'
import { isLockTimeout } from '../postgres/sqlState.ts'
import { sendDeadlineMs } from '../requestDurations.ts'
import {
  applyAnswers,
  beginTrial,
  type LockedBreaker,
  letNextRecordBeTrial,
  lockDueBreaker,
  lockTrialSubmission,
  readClaimable,
  readLastTransaction,
} from './breaker.ts'
import { beginClaimSql, countFreeForSubmissions, insertRequests, lockBudget, type NewRequest } from './budget.ts'
import { isBehindOwnVersionSql } from './documents.ts'
import type { LedgerHistory } from './history/history.ts'
import type { InstanceLedger } from './outcomes.ts'
import { submissionColumnsSql } from './submissions.ts'

/**
 * Claims records, polls and requests. Each claim is one transaction. It takes its locks in this order:
 *
 *     due polls        skips those that are locked
 *     outboxd.ledger   waits for an instance that claims, 2 s at most if that one stops
 *     the breaker      waits for an instance whose answer opens or closes it
 *     records          skips those that are locked
 *
 * Bodies are read after the COMMIT: a process that stopped while it received megabytes would hold the locks for ever,
 * because Postgres does not end a session that waits for its client.
 */
export class Claims {
  readonly #on: ClaimLedger
  readonly #clock: Pick<Clock, 'stopwatch'>

  constructor(on: ClaimLedger, clock: Pick<Clock, 'stopwatch'>) {
    this.#on = on
    this.#clock = clock
  }

  /**
   * @param onCommit called just before the COMMIT. If an error comes earlier, nothing was claimed.
   * @throws Error after that call if the COMMIT may have happened. Then call `requeueUnsentClaim`.
   */
  claim(request: ClaimRequest, onCommit: OnCommit): Promise<Claim> {
    return this.#claim(request.id, onCommit, (db) => this.#claimUpTo(db, request))
  }

  /**
   * Claims the one request that may end the breaker's pause: a poll, a submission, or a question.
   *
   * @throws Error as `claim` does
   */
  claimTrial(id: string, onCommit: OnCommit): Promise<Claim> {
    return this.#claim(id, onCommit, (db) => this.#takeTrial(db, id))
  }

  async #claim(id: string, onCommit: OnCommit, take: (db: Database) => Promise<CommittedClaim | null>): Promise<Claim> {
    const claimed = await this.#take(async (db) => {
      const taken = await take(db)
      if (taken === null) return null
      onCommit(taken.submissions)
      return taken
    })
    if (claimed === null) return nothingClaimed
    for (const { requestId } of claimed.submissions) this.#on.history.rememberRequest(requestId)
    for (const { poll } of claimed.polls) this.#on.history.rememberRequest(poll.requestId)
    if (claimed.question !== null) this.#on.history.rememberRequest(claimed.question.requestId)
    if (claimed.submissions.length > 0) await this.#on.history.assertCommitIsCertain()
    return { ...claimed, submissions: await withBodies(this.#on.ledger, id, claimed.submissions) }
  }

  /**
   * Queues the records of a claim again whose COMMIT was answered too late or not at all, so that none was sent.
   *
   * @returns false if the COMMIT may still take effect, so that the caller must try again
   */
  async requeueUnsentClaim(claimId: string, submissionIds: readonly string[]): Promise<boolean> {
    try {
      await inTransaction(this.#on.ledger, async (db) => {
        // The claim's transaction has locked them until it ends.
        await db.query('select from outboxd.submission where id = any($1::uuid[]) for no key update nowait', [
          submissionIds,
        ])
        await requeueUnsentClaim(db, claimId, this.#on.instance.who)
      })
      return true
    } catch (error) {
      if (isLockTimeout(error)) return false
      throw error
    }
  }

  /** @returns null if fewer than `freeMin` requests are free */
  async claimTokenRequest(freeMin: number): Promise<ClaimedRequest | null> {
    const request = await this.#take(async (db) =>
      (await lockBudget(db)) < freeMin ? null : this.#insertRequest(db, 'token'),
    )
    if (request !== null) this.#on.history.rememberRequest(request.requestId)
    return request
  }

  /** Commits what `work` claimed, and rolls back if it returns null. */
  async #take<T>(work: (db: Database) => Promise<T | null>): Promise<T | null> {
    await using transaction = await beginTransaction(this.#on.ledger, {
      mustSurviveFailover: true,
      openingSql: beginClaimSql,
    })
    if (!(await this.#on.history.mayClaim(transaction.db))) return null
    const taken = await work(transaction.db)
    if (taken !== null) await transaction.commit()
    return taken
  }

  /** @returns null if nothing is to be sent, or other instances took the requests for the polls that were fetched */
  async #claimUpTo(db: Database, request: ClaimRequest): Promise<CommittedClaim | null> {
    const { queue } = this.#on
    const fetched = request.polls > 0 ? await queue.fetch(db, request.polls, { rarely: false }) : []
    const rare = request.rarePolls > 0 ? await queue.fetch(db, request.rarePolls, { rarely: true }) : []
    const due = await this.#readPolls(db, [...fetched, ...rare])
    const free = await lockBudget(db)
    const claimable = free === 0 ? 'nothing' : await readClaimable(db)
    if (claimable === 'nothing') return null
    const most = claimable === 'polls' ? 0 : request.submissions
    const wanted = countFreeForSubmissions({ submissions: most, polls: due.length }, free)
    const submissions = wanted === 0 ? [] : await this.#claimQueued(db, request.id, wanted)
    if (submissions.length + due.length > free) return null
    return this.#withRequests(db, { id: request.id, submissions, due })
  }

  /** @returns null if the breaker is not due, or nothing can be its trial */
  async #takeTrial(db: Database, claimId: string): Promise<CommittedClaim | null> {
    const { queue } = this.#on
    // One of them may be for the record that opened the breaker.
    const due = await this.#readPolls(db, await queue.fetch(db, 2, { rarely: false }))
    const free = await lockBudget(db)
    const breaker = free === 0 ? null : await lockDueBreaker(db)
    if (breaker === null) return null
    if (breaker.lostTrial !== null) {
      await this.#makePollsDue(db, due)
      await applyAnswers(db, [lostTrialAnswer(breaker.lostTrial)], this.#on.backoff)
      return nothingClaimed
    }
    const claim = await this.#chooseTrial(db, { claimId, breaker, due })
    if (claim === null) {
      if (breaker.hasGetWorked) return null
      await letNextRecordBeTrial(db)
      return nothingClaimed
    }
    const polled = claim.polls.map(({ submission }) => submission.id)
    await this.#makePollsDue(
      db,
      due.filter(({ id }) => !polled.includes(id)),
    )
    const trial = claim.question?.requestId ?? claim.submissions[0]?.requestId ?? claim.polls[0]?.poll.requestId
    if (trial !== undefined) await beginTrial(db, trial)
    return claim
  }

  /** Gives back polls that were fetched and are not made. */
  async #makePollsDue(db: Database, polled: readonly Submission[]): Promise<void> {
    const ids = polled.map(({ id }) => id)
    const polls = ids.map((submissionId) => ({ submissionId, inMs: 0, rarely: false }))
    if (ids.length > 0) await this.#on.queue.replace(db, ids, polls)
  }

  async #chooseTrial(
    db: Database,
    { claimId, breaker, due }: { claimId: string; breaker: LockedBreaker; due: readonly Submission[] },
  ): Promise<CommittedClaim | null> {
    const { level, openedBy, isOfSubmission, isInDoubt, hasGetWorked } = breaker
    const polls = hasGetWorked ? [] : due
    const poll = polls.find(({ id }) => id !== openedBy)
    // Polls that fail may alone be the cause, so after each failed trial another kind of request is next.
    if (poll !== undefined && level % 2 === 0)
      return this.#withRequests(db, { id: claimId, submissions: [], due: [poll] })
    const ready = await lockTrialSubmission(db, openedBy)
    const isReadyForAll = ready !== null && ready !== openedBy
    if (isOfSubmission && !hasGetWorked && (isInDoubt || !isReadyForAll)) {
      const asked = await this.#askForLast(db)
      if (asked !== null) return asked
    }
    const anyPoll = poll ?? polls[0]
    if (!isReadyForAll && anyPoll !== undefined)
      return this.#withRequests(db, { id: claimId, submissions: [], due: [anyPoll] })
    if (ready === null) return hasGetWorked ? null : this.#askForLast(db)
    const submissions = await this.#claimQueued(db, claimId, 1, ready)
    return submissions.length === 0 ? null : this.#withRequests(db, { id: claimId, submissions, due: [] })
  }

  async #askForLast(db: Database): Promise<CommittedClaim | null> {
    const last = await readLastTransaction(db)
    if (last === null) return null
    const { requestId, mayLeave } = await this.#insertRequest(db, 'question')
    return { submissions: [], polls: [], question: { ...last, requestId }, mayLeave }
  }

  async #withRequests(
    db: Database,
    { id, submissions, due }: { id: string; submissions: readonly QueuedSubmission[]; due: readonly Submission[] },
  ): Promise<CommittedClaim> {
    const { ids, mayLeave } = await this.#insertRequests(db, [
      ...submissions.map(() => ({ purpose: 'submission' as const })),
      ...due.map(({ id: submissionId }) => ({ purpose: 'poll' as const, submissionId, claimId: id })),
    ])
    return {
      submissions: submissions.map((each, nth) => ({ ...each, requestId: ids[nth] as string })),
      polls: due.map((submission, nth) => ({
        submission,
        poll: { requestId: ids[submissions.length + nth] as string, claimId: id },
      })),
      question: null,
      mayLeave,
    }
  }

  /** Reads the records of polls. Removes polls of records that are no longer polled. */
  async #readPolls(db: Database, submissionIds: readonly string[]): Promise<Submission[]> {
    if (submissionIds.length === 0) return []
    const { rows } = await db.query<Submission>(
      `select ${submissionColumnsSql} from outboxd.submission s
       where id = any($1::uuid[]) and (state = 'accepted' or state = 'sending' and probing)`,
      [submissionIds],
    )
    const polled = new Set(rows.map(({ id }) => id))
    const stale = submissionIds.filter((id) => !polled.has(id))
    if (stale.length > 0) await this.#on.queue.replace(db, stale, [])
    return rows
  }

  #claimQueued(db: Database, claimId: string, limit: number, only: string | null = null) {
    const { id: instanceId, who } = this.#on.instance
    return claimQueuedSubmissions(db, { id: claimId, instanceId, limit, only, who })
  }

  async #insertRequest(db: Database, purpose: RequestPurpose): Promise<ClaimedRequest> {
    const { ids, mayLeave } = await this.#insertRequests(db, [{ purpose }])
    return { requestId: ids[0] as string, mayLeave }
  }

  /** The deadline begins before the insert, so that no request leaves after the time that its row allows. */
  async #insertRequests(
    db: Database,
    requests: readonly NewRequest[],
  ): Promise<{ ids: string[]; mayLeave: () => boolean }> {
    const ageMs = this.#clock.stopwatch()
    const mayLeave = () => ageMs() < sendDeadlineMs
    if (requests.length === 0) return { ids: [], mayLeave }
    const { instance, requestOverAfterMs } = this.#on
    const ids = await insertRequests(db, { instanceId: instance.id, overAfterMs: requestOverAfterMs }, requests)
    return { ids, mayLeave }
  }
}

type ClaimLedger = Pick<InstanceLedger, 'ledger' | 'queue' | 'instance' | 'requestOverAfterMs' | 'backoff'> & {
  history: Pick<LedgerHistory, 'mayClaim' | 'rememberRequest' | 'assertCommitIsCertain'>
}

interface CommittedClaim extends Omit<Claim, 'submissions'> {
  submissions: CommittedSubmission[]
}

const nothingClaimed = { submissions: [], polls: [], question: null, mayLeave: () => false }

export type OnCommit = (submissions: readonly (Submission & { requestId: string })[]) => void

type QueuedSubmission = Omit<CommittedSubmission, 'requestId'>

type CommittedSubmission = Omit<ClaimedSubmission, 'body'>

/**
 * Makes up to `limit` due submissions `sending`. The caller sends them only after the COMMIT.
 *
 * @param claim.only the only submission to claim; null for any
 */
export async function claimQueuedSubmissions(
  db: Database,
  claim: { id: string; instanceId: string; limit: number; only?: string | null; who: string },
): Promise<QueuedSubmission[]> {
  const { rows } = await db.query<QueuedSubmission>(
    `with ready as (
       select id, due_at from outboxd.submission q
       where state = 'queued' and not held and due_at <= clock_timestamp() and ($5::uuid is null or id = $5)
         and not ${isBehindOwnVersionSql('q')}
       order by due_at, seq limit $3 for update skip locked
     ), s as (
       update outboxd.submission s set state = 'sending', revision = revision + 1, due_at = null, attempt = attempt + 1,
         claim_id = $1, instance_id = $2, sent_at = clock_timestamp()
       from ready where s.id = ready.id
       returning s.*, extract(epoch from clock_timestamp() - ready.due_at)::float8 * 1000 as waited_ms
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, actor, who)
       select id, 'queued', 'sending', attempt, 'claimed', 'outboxd', $4 from s order by seq
     )
     select ${submissionColumnsSql}, s.waited_ms as "waitedMs" from s order by s.seq`,
    [claim.id, claim.instanceId, claim.limit, claim.who, claim.only ?? null],
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

/** Queues the records again that the claim has made `sending`. */
export async function requeueUnsentClaim(db: Database, claimId: string, who: string): Promise<void> {
  await db.query(
    `with given as (
       update outboxd.submission set state = 'queued', revision = revision + 1, due_at = now(), claim_id = null,
         instance_id = null
       where claim_id = $1 and state = 'sending' returning id, attempt
     )
     insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, message, actor, who)
     select id, 'sending', 'queued', attempt, 'never_sent', 'never sent: the claim was lost', 'outboxd', $2 from given`,
    [claimId, who],
  )
}
