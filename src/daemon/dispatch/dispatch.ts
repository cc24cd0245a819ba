import { randomUUID } from 'node:crypto'
import type { Claims, OnCommit } from '../../ledger/claims.ts'
import type { Claim, RequestDemand } from '../../model/dispatch.ts'
import { type Answer, endOfRequest } from '../../model/service.ts'
import type { AttemptResult, PollClaim, Submission } from '../../model/submission.ts'
import type { SendingReadiness } from '../../observe/httpServer.ts'
import type { PauseLog } from '../../observe/pauseLog.ts'
import { serviceResources } from '../../resources.ts'
import { requestOutcomeOf } from '../../service/readAnswer.ts'
import type { TokenCache } from '../../service/tokens.ts'
import type { Attempts } from '../attempts.ts'
import type { DaemonContext } from '../context.ts'
import type { Heartbeat } from '../heartbeat.ts'
import type { LoopPart } from '../loop.ts'
import { type PollPlanner, readyRecordsCountedMax } from '../pollPlanner.ts'
import {
  type AttemptInterpretation,
  interpretAttempt,
  interpretQuestion,
  isRefusedToken,
  noSilence,
  refusedTokenAnswer,
  unsentTrialAnswer,
} from './interpretAttempt.ts'
import { emptyOutcome, type OutcomeToWrite, type OutcomeWriter } from './outcomeWriter.ts'
import {
  type AllocationBalance,
  blockedWaitMs,
  type InstanceState,
  planRound,
  type RoundPlan,
  retrySoonMs,
  roundWaitMaxMs,
  untilFreeMs,
} from './planRound.ts'
import type { TokenRequests } from './tokenRequests.ts'

/** What a round uses, in this order. */
export interface DispatchStages {
  readDemand(countMax: number): Promise<RequestDemand>
  pauseLog: Pick<PauseLog, 'seen'>
  planner: Pick<PollPlanner, 'noteDemand'>
  heartbeat: Pick<Heartbeat, 'mayClaim' | 'watchHeartbeat'>
  tokens: Pick<TokenCache, 'ready' | 'expiresAtMs' | 'used' | 'reject'>
  tokenRequests: Pick<TokenRequests, 'limit'>
  claims: Pick<Claims, 'claim' | 'claimTrial' | 'requeueUnsentClaim'>
  attempts: Pick<Attempts, 'submit' | 'poll' | 'ask'>
  outcomes: Pick<OutcomeWriter, 'add'>
}

/** If the breaker waits for a person, polls go on, and nothing else keeps them from asking for a token each second. */
const refusedTokenWaitMs = 5_000
/** An opening that takes longer counts as blocked by a lock. */
const openingWriteMaxMs = 5_000

/**
 * Makes the requests. A round:
 *
 *     look     what is due, and what may be sent (readRequestDemand): no lock, and nothing is claimed if nothing can be sent
 *     plan     planRound: wait, the trial of the breaker, or so many submissions and polls
 *     token    kept or fetched
 *     claim    one transaction (Claims); from its COMMIT on, a record counts as sent
 *     send     each request by itself (Attempts); none leaves after its deadline, or after a gap of the heartbeat
 *     write    what each answer means, for its record and for the breaker (OutcomeWriter); then there is room again
 *
 * A claim whose COMMIT was not answered in time is never sent. Its records are queued again when its fate is known.
 */
export class Dispatch implements LoopPart {
  readonly #daemon: DaemonContext
  readonly #stages: DispatchStages
  /** The requests whose outcome is not written yet. */
  readonly #running = new Map<RequestInFlight, Promise<void>>()
  /** A COMMIT can hang while a disk or a standby is away, and take effect much later. */
  readonly #lost = new Map<string, LostClaim>()
  #pauses: SendingReadiness['pauses'] = []
  #balance: AllocationBalance | null = null
  /** Requests that may still be made, as far as this instance knows. */
  #free = 0
  #streaks = noSilence
  /** Answers of this instance that open the breaker: so many were there, so many are written. */
  #openings = 0
  #openingsWritten = 0
  #lastOpeningAgeMs = () => 0
  #lateRequests = 0

  constructor(daemon: DaemonContext, stages: DispatchStages) {
    this.#daemon = daemon
    this.#stages = stages
  }

  async runOnce(): Promise<number> {
    await this.recoverClaims()
    const withoutLookMs = blockedWaitMs(this.#state())
    if (withoutLookMs !== null) return withoutLookMs
    const openingsBefore = this.#openings
    const room = this.#daemon.config.maxInFlight - this.#running.size
    const demand = await this.#stages.readDemand(Math.max(room, readyRecordsCountedMax))
    if (this.#openings > openingsBefore) return retrySoonMs
    this.#learn(demand)
    const plan = planRound(this.#state(), demand)
    this.#balance = plan.balance
    if (plan.kind === 'wait') return plan.forMs
    return this.#carryOut(plan, demand, () => this.#openings > openingsBefore)
  }

  inFlight(): number {
    return this.#running.size
  }

  /** True if the submission is in flight here, or in a lost claim of this instance. */
  holds({ id, claimId }: Pick<Submission, 'id' | 'claimId'>): boolean {
    if (claimId !== null && this.#lost.has(claimId)) return true
    return this.#sending().some((each) => each.id === id && each.claimId === claimId)
  }

  holdsPoll({ requestId, claimId }: PollClaim): boolean {
    return this.#lost.has(claimId) || [...this.#running.keys()].some(({ poll }) => poll?.requestId === requestId)
  }

  unsettled(): { submissionId: string; outboxId: string }[] {
    const running = [...this.#running.keys()].flatMap(({ submission }) => submission ?? [])
    const lost = this.lostClaims().flatMap(({ submissions }) => submissions)
    return [...running, ...lost].map(({ id, outboxId }) => ({ submissionId: id, outboxId }))
  }

  lostClaims(): LostClaim[] {
    return [...this.#lost.values()]
  }

  /** Queues the records of lost claims again, as far as the fate of the claims is known. */
  async recoverClaims(): Promise<void> {
    for (const { id: claimId, submissions, isTrial } of this.lostClaims()) {
      const ids = submissions.map(({ id }) => id)
      if (!(await this.#stages.claims.requeueUnsentClaim(claimId, ids))) continue
      this.#lost.delete(claimId)
      const requestIds = submissions.map(({ requestId }) => requestId)
      const answers = isTrial ? requestIds.map(unsentTrialAnswer) : []
      if (requestIds.length > 0)
        void this.#stages.outcomes.add({ ...emptyOutcome, unsentRequests: requestIds, answers })
      // Its polls are due again.
      this.#daemon.wakeups.orphans.wake()
    }
  }

  /** Resolves when nothing is in flight, and all outcomes are written. */
  async drained(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values())
  }

  /** Requests in a row whose deadline passed before they could leave. */
  lateRequests(): number {
    return this.#lateRequests
  }

  pauses(): SendingReadiness['pauses'] {
    return this.#pauses
  }

  #state(): InstanceState {
    const { config, clock, host } = this.#daemon
    return {
      nowMs: clock.nowMs(),
      windowMs: config.rateLimit.windowMs,
      maxInFlight: config.maxInFlight,
      inFlight: this.#running.size,
      recordsInFlight: this.#sending().length,
      isPausing: this.#openings > this.#openingsWritten && this.#lastOpeningAgeMs() < openingWriteMaxMs,
      mayClaim: this.#stages.heartbeat.mayClaim() && host.mayClaim(),
      hasHostFault: host.fault() !== null,
      silentRecords: this.#streaks.submissions,
      balance: this.#balance,
    }
  }

  #learn(demand: RequestDemand): void {
    const { pauseLog, planner, tokenRequests } = this.#stages
    const nowMs = this.#daemon.clock.nowMs()
    pauseLog.seen(demand.pauses)
    this.#pauses = demand.pauses.map(({ reason, leftMs, forMs }) => ({
      reason,
      sinceMs: nowMs - forMs,
      untilMs: leftMs === null ? null : nowMs + leftMs,
    }))
    tokenRequests.limit = demand.limit
    planner.noteDemand(demand)
    this.#free = demand.free
  }

  async #carryOut(
    plan: Exclude<RoundPlan, { kind: 'wait' }>,
    { nextFreeMs }: RequestDemand,
    isOutdated: () => boolean,
  ): Promise<number> {
    const token = await this.#readyToken()
    if (token.kind === 'not-now') return untilFreeMs(nextFreeMs)
    if (token.kind === 'pause') {
      void this.#stages.outcomes.add({ ...emptyOutcome, answers: [refusedTokenAnswer(token.pause)] })
      return refusedTokenWaitMs
    }
    if (isOutdated()) return retrySoonMs
    if ((await this.#begin(plan, token.accessToken)) > 0) return 0
    // Nothing can be the trial, or another instance has it.
    return plan.kind === 'trial' ? roundWaitMaxMs : retrySoonMs
  }

  #readyToken() {
    const { tokens } = this.#stages
    return tokens.ready().finally(() => this.#daemon.metrics.tokenExpiry.set(tokens.expiresAtMs()))
  }

  /** @returns how many requests were claimed */
  async #begin(plan: Exclude<RoundPlan, { kind: 'wait' }>, accessToken: string): Promise<number> {
    const { claims, heartbeat } = this.#stages
    const ageMs = this.#daemon.clock.stopwatch()
    const id = randomUUID()
    const isBeating = heartbeat.watchHeartbeat()
    const isTrial = plan.kind === 'trial'
    const sinceMs = this.#daemon.clock.nowMs()
    const onCommit: OnCommit = (submissions) => this.#lost.set(id, { id, submissions, isTrial, sinceMs })
    const claim = await (plan.kind === 'trial'
      ? claims.claimTrial(id, onCommit)
      : claims.claim({ id, submissions: plan.submissions, polls: plan.polls, rarePolls: plan.rarePolls }, onCommit))
    const claimed = claim.submissions.length + claim.polls.length + (claim.question === null ? 0 : 1)
    this.#free -= claimed
    // After a gap of the heartbeat the claim counts as lost.
    if (isBeating()) {
      this.#lost.delete(id)
      this.#sendSubmissions(claim, { isTrial, accessToken, ageMs }, isBeating)
    }
    this.#sendGets(claim, { isTrial, accessToken, ageMs })
    return claimed
  }

  #sendSubmissions({ submissions, mayLeave }: Claim, sending: Sending, isBeating: () => boolean): void {
    const { attempts } = this.#stages
    for (const submission of submissions) {
      this.#daemon.telemetry.claimed(submission)
      const { requestId } = submission
      const sent = { ...sending, submission, poll: null, requestId }
      const may = { accessToken: sending.accessToken, mayLeave: () => mayLeave() && isBeating() }
      const working = attempts.submit(submission, may)
      this.#follow(sent, () => this.#attemptEnded(sent, working))
    }
  }

  /** The service can be asked again at any time, so a gap of the heartbeat does no harm. */
  #sendGets({ polls, question, mayLeave }: Claim, sending: Sending): void {
    const { attempts } = this.#stages
    const may = { accessToken: sending.accessToken, mayLeave }
    for (const { submission, poll } of polls) {
      const sent = { ...sending, submission, poll, requestId: poll.requestId }
      const working = attempts.poll(submission, may)
      this.#follow(sent, () => this.#attemptEnded(sent, working))
    }
    if (question === null) return
    const asking = attempts.ask(question, may)
    this.#follow({ submission: null, poll: null }, async () => {
      const asked = await asking
      const { requestId, resource } = question
      const endpoint = serviceResources[resource].ask
      if (asked.answer !== null) {
        this.#stages.tokens.used(sending.accessToken, asked.answer)
        this.#daemon.telemetry.requestDone(endpoint, asked.answer)
      }
      const interpretation = interpretQuestion({ ...asked, requestId }, this.#streaks, this.#attemptContext(sending))
      await this.#write(interpretation, { ...sending, requestId }, asked.answer)
    })
  }

  /** Submissions that are sent, not polled. */
  #sending(): Submission[] {
    return [...this.#running.keys()].flatMap(({ submission, poll }) => (poll === null ? (submission ?? []) : []))
  }

  /** @param ending resolves when the outcome is written */
  #follow(request: RequestInFlight, ending: () => Promise<void>): void {
    this.#running.set(request, Promise.resolve())
    const ended = ending()
      .catch((error: unknown) =>
        this.#daemon.log.error(
          'answer to a request could not be processed: the daemon goes on as if the answer had been lost',
          { error },
        ),
      )
      .then(() => {
        this.#running.delete(request)
        this.#daemon.wakeups.dispatch.wake()
      })
    this.#running.set(request, ended)
  }

  async #attemptEnded(sent: SentAttempt, working: Promise<AttemptResult>): Promise<void> {
    const { telemetry, host } = this.#daemon
    const attempted = await working
    const { answer } = attempted
    if (answer !== null) this.#stages.tokens.used(sent.accessToken, answer)
    this.#lateRequests = answer === null && host.fault() === null ? this.#lateRequests + 1 : 0
    telemetry.attempted(sent.submission, attempted)
    const outcome = answer === null ? null : requestOutcomeOf(answer)
    const attempt = { ...sent, attempted, outcome }
    await this.#write(interpretAttempt(attempt, this.#streaks, this.#attemptContext(sent)), sent, answer)
  }

  #attemptContext({ ageMs }: Sending) {
    return { maxInFlight: this.#daemon.config.maxInFlight, free: this.#free, ageMs }
  }

  async #write(interpretation: AttemptInterpretation, sent: Sent, answer: Answer | null): Promise<void> {
    const { tokens, outcomes } = this.#stages
    this.#streaks = interpretation.streaks
    if (isRefusedToken(answer)) tokens.reject(sent.accessToken)
    const openings = interpretation.work.answers.filter(({ sign }) => sign.kind === 'fails').length
    this.#openings += openings
    if (openings > 0) this.#lastOpeningAgeMs = this.#daemon.clock.stopwatch()
    await outcomes.add({ ...interpretation.work, ...endOf(sent.requestId, answer) }).finally(() => {
      this.#openingsWritten += openings
    })
    // The open breaker now holds records back, so unanswered requests are counted from zero again.
    if (openings > 0) this.#streaks = noSilence
  }
}

interface RequestInFlight {
  /** Null for a question. */
  submission: Submission | null
  poll: PollClaim | null
}

/** A claim whose COMMIT was not answered in time. None of its records was or will be sent. */
interface LostClaim {
  id: string
  submissions: readonly (Submission & { requestId: string })[]
  /** True if it is the trial of the breaker. */
  isTrial: boolean
  sinceMs: number
}

interface Sending {
  /** True if the request is the trial of the breaker. */
  isTrial: boolean
  accessToken: string
  ageMs: () => number
}

interface Sent extends Sending {
  requestId: string
}

interface SentAttempt extends Sent {
  submission: Submission
  poll: PollClaim | null
}

/** What became of a request. One without an answer counts for as long as it may still arrive. */
function endOf(requestId: string, answer: Answer | null): Partial<OutcomeToWrite> {
  const end = endOfRequest(answer)
  if (end === 'unsent') return { unsentRequests: [requestId] }
  return end === 'answered' ? { answeredRequests: [requestId] } : {}
}
