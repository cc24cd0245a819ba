import type { Clock } from '../../clock.ts'
import type { Claims } from '../../ledger/claims.ts'
import type { ClaimedSubmission, ClaimRequest, RequestDemand } from '../../model/dispatch.ts'
import { type Answer, endOfRequest, type Outcome, type TokenVerdict, wasProcessSuspended } from '../../model/service.ts'
import type { AttemptResult, PollClaim, Submission } from '../../model/submission.ts'
import { trialDeadlineMs } from '../../requestDurations.ts'
import type { AllocationBalance } from './allocateRequests.ts'
import { createInFlightTracker, createLostClaimStore } from './inFlight.ts'
import {
  type AttemptInterpretation,
  interpretAttempt,
  interpretTrialWithoutRecord,
  type JudgedTrial,
  noFailureStreaks,
  resetUnansweredStreaks,
} from './interpretAttempt.ts'
import { emptyOutcome, type OutcomeToWrite } from './outcomeWriter.ts'
import {
  blockedWaitMs,
  type InstanceState,
  planRound,
  type RoundPlan,
  retrySoonMs,
  roundWaitMaxMs,
  untilFreeMs,
} from './planRound.ts'

export interface DispatcherDeps {
  clock: Clock
  windowMs: number
  maxInFlight: number
  countDueRequests(countedMax: number): Promise<RequestDemand>
  onDemand(demand: RequestDemand): void
  claims: Pick<Claims, 'claim' | 'requeueUnsentClaim' | 'claimTrialRequest'>
  mayClaim(): boolean
  /** Call it before the claim. The result says, until the request leaves, whether it may be sent. */
  watchHeartbeat(): () => boolean
  token(): Promise<TokenVerdict>
  onTokenRefused(accessToken: string): void
  submit(submission: ClaimedSubmission, accessToken: string, isValid: () => boolean): Promise<AttemptResult>
  poll(submission: Submission, accessToken: string, isValid: () => boolean): Promise<AttemptResult>
  /** @returns null if the request never left */
  sendHarmlessTrial(accessToken: string, isValid: () => boolean): Promise<Answer | null>
  judgeAnswer(answer: Answer, accessToken: string): JudgedAnswer
  writeOutcome(work: OutcomeToWrite): Promise<void>
  newId(): string
  onAttempted(submission: Submission, attempted: AttemptResult, accessToken: string): void
  onRoom(): void
  onFailed(error: unknown): void
}

export interface JudgedAnswer {
  fingerprint: string | null
  outcome: Outcome
  judged: JudgedTrial
}

export type Dispatcher = ReturnType<typeof createDispatcher>

/** Ready records are counted up to this. More hardly change a poll's price, and counting costs more than sending. */
export const readyRecordsCountedMax = 1_000

export function createDispatcher(deps: DispatcherDeps) {
  const requests = createInFlightTracker(deps)
  const lost = createLostClaimStore(deps.clock.nowMs, deps.claims)
  const seen = { free: 0 }
  const answers = createAnswerHandling(deps, seen)
  let balance: AllocationBalance | null = null
  let lastTrialWasPoll = false

  const own = (): InstanceState => ({
    nowMs: deps.clock.nowMs(),
    windowMs: deps.windowMs,
    maxInFlight: deps.maxInFlight,
    inFlight: requests.count(),
    recordsInFlight: requests.sending().length,
    isPausing: answers.isPausing(),
    mayClaim: deps.mayClaim(),
    silentRecords: answers.silentRecords(),
    lastTrialWasPoll,
    balance,
  })

  async function runOnce(): Promise<number> {
    await lost.recover()
    const before = own()
    const withoutLookMs = blockedWaitMs(before)
    if (withoutLookMs !== null) return withoutLookMs
    const pausesBefore = answers.pausesCalled()
    const { maxInFlight, inFlight } = before
    const demand = await deps.countDueRequests(Math.max(maxInFlight - inFlight, readyRecordsCountedMax))
    if (answers.pausesCalled() > pausesBefore) return retrySoonMs
    deps.onDemand(demand)
    seen.free = demand.free
    const plan = planRound(own(), demand)
    balance = plan.balance
    return carryOut(plan, demand, () => answers.pausesCalled() > pausesBefore)
  }

  async function carryOut(plan: RoundPlan, { nextFreeMs }: RequestDemand, isOutdated: () => boolean): Promise<number> {
    if (plan.kind === 'wait') return plan.forMs
    const token = await deps.token()
    if (token.kind === 'not-now') return untilFreeMs(nextFreeMs)
    if (token.kind === 'pause') {
      void deps.writeOutcome({ ...emptyOutcome, pauses: [token.pause] })
      return roundWaitMaxMs
    }
    if (isOutdated()) return retrySoonMs
    if (plan.kind === 'trial') lastTrialWasPoll = plan.by === 'poll'
    return (await begin(plan, token.accessToken)) === 0 ? retrySoonMs : 0
  }

  function begin(plan: Exclude<RoundPlan, { kind: 'wait' }>, accessToken: string): Promise<number> {
    if (plan.kind === 'send') {
      const { submissions, polls, rarePolls } = plan
      return claimAndSend({ submissions, polls, rarePolls, trial: false }, accessToken)
    }
    if (plan.by === 'question') return askAndFollow(accessToken)
    return claimAndSend({ submissions: 0, polls: 1, rarePolls: 0, trial: true }, accessToken)
  }

  async function claimAndSend(wanted: Omit<ClaimRequest, 'id'>, accessToken: string): Promise<number> {
    const ageMs = deps.clock.stopwatch()
    const request = { id: deps.newId(), ...wanted }
    const maySend = deps.watchHeartbeat()
    const claim = await deps.claims.claim(request, (taken) => lost.remember(request.id, taken))
    seen.free -= claim.submissions.length + claim.polls.length
    // A claim that took too long counts as lost: the next round requeues its records unsent.
    const isTimely = maySend()
    if (isTimely) lost.forget(request.id)
    else if (claim.submissions.length > 0)
      void deps.writeOutcome({
        ...emptyOutcome,
        unsentRequests: claim.submissions.map(({ requestId }) => requestId),
        trialEnded: claim.isFirstAfterTrial,
      })
    const mayTrialLeave = () => claim.mayLeave() && ageMs() < trialDeadlineMs
    const follow = (sent: SentAttempt, working: Promise<AttemptResult>) =>
      requests.follow(sent, () => answers.ended(sent, working))
    for (const submission of isTimely ? claim.submissions : []) {
      const { requestId } = submission
      const mayLeave = claim.isFirstAfterTrial ? mayTrialLeave : claim.mayLeave
      const working = deps.submit(submission, accessToken, () => mayLeave() && maySend())
      follow({ submission, poll: null, trial: claim.isFirstAfterTrial, requestId, accessToken, ageMs }, working)
    }
    for (const { submission, poll } of claim.polls) {
      const working = deps.poll(submission, accessToken, wanted.trial ? mayTrialLeave : claim.mayLeave)
      const { requestId } = poll
      follow({ submission, poll, trial: wanted.trial, requestId, accessToken, ageMs }, working)
    }
    return claim.submissions.length + claim.polls.length
  }

  async function askAndFollow(accessToken: string): Promise<number> {
    const ageMs = deps.clock.stopwatch()
    const claimed = await deps.claims.claimTrialRequest()
    if (claimed === null) return 0
    const mayLeave = () => claimed.mayLeave() && ageMs() < trialDeadlineMs
    const { requestId } = claimed
    requests.follow({ submission: null, poll: null }, () =>
      answers.harmlessTrialEnded({ requestId, accessToken, ageMs }, mayLeave),
    )
    return 1
  }

  return {
    runOnce,
    inFlight: requests.count,
    unsettled: () =>
      [...requests.held(), ...lost.list().flatMap(({ submissions }) => submissions)].map(({ id, outboxId }) => ({
        submissionId: id,
        outboxId,
      })),
    /** True if the submission is in flight here, or in a lost claim of this instance. */
    holds: ({ id, claimId }: Pick<Submission, 'id' | 'claimId'>): boolean =>
      (claimId !== null && lost.has(claimId)) ||
      requests.sending().some((each) => each.id === id && each.claimId === claimId),
    holdsPoll: ({ requestId, claimId }: PollClaim): boolean =>
      lost.has(claimId) || requests.polls().some((poll) => poll.requestId === requestId),
    lostClaims: lost.list,
    recoverClaims: lost.recover,
    drained: requests.drained,
  }
}

interface Sent {
  requestId: string
  accessToken: string
  ageMs: () => number
}

/** What became of a request. One without an answer counts for as long as it may still arrive. */
function outcomeOfRequest({ requestId }: Sent, answer: Answer | null): Partial<OutcomeToWrite> {
  const end = endOfRequest(answer)
  if (end === 'unsent') return { unsentRequests: [requestId] }
  return end === 'answered' ? { answeredRequests: [requestId] } : {}
}

interface SentAttempt extends Sent {
  submission: Submission
  poll: PollClaim | null
  /** True if the answer decides whether the pauses are over. */
  trial: boolean
}

const pauseWriteMaxMs = 5_000

function createAnswerHandling(deps: DispatcherDeps, seen: Readonly<{ free: number }>) {
  let streaks = noFailureStreaks
  let [called, written] = [0, 0]
  let lastCalledAgeMs = () => 0

  const circumstances = (ageMs: () => number) => ({ ...deps, free: seen.free, ageMs })

  async function write(interpretation: AttemptInterpretation, sent: Sent, answer: Answer | null): Promise<void> {
    streaks = interpretation.streaks
    if (interpretation.isTokenRefused) deps.onTokenRefused(sent.accessToken)
    const calls = interpretation.work.pauses.length
    called += calls
    if (calls > 0) lastCalledAgeMs = deps.clock.stopwatch()
    await deps.writeOutcome({ ...interpretation.work, ...outcomeOfRequest(sent, answer) }).finally(() => {
      written += calls
    })
    // The written pause now holds records back, so unanswered requests are counted from zero again.
    if (interpretation.shouldResetStreaks) streaks = resetUnansweredStreaks(streaks)
  }

  return {
    async ended(sent: SentAttempt, working: Promise<AttemptResult>): Promise<void> {
      const { submission, poll, trial, accessToken, ageMs } = sent
      const attempted = await working
      deps.onAttempted(submission, attempted, accessToken)
      const { step, answer } = attempted
      const signs = answer === null ? null : deps.judgeAnswer(answer, accessToken)
      const isJudged = trial && poll !== null && step.pause === null && answer !== null && !wasProcessSuspended(answer)
      const judged = isJudged && signs !== null ? signs.judged : null
      const { fingerprint = null, outcome = null } = signs ?? {}
      const end = { submission, poll, trial, attempted, fingerprint, outcome, judged }
      await write(interpretAttempt(end, streaks, circumstances(ageMs)), sent, answer)
    },
    async harmlessTrialEnded(sent: Sent, mayLeave: () => boolean): Promise<void> {
      const { accessToken, ageMs } = sent
      const answer = await deps.sendHarmlessTrial(accessToken, mayLeave)
      const says = answer !== null && !wasProcessSuspended(answer)
      const asked = says ? { answer, judged: deps.judgeAnswer(answer, accessToken).judged } : null
      await write(interpretTrialWithoutRecord(asked, streaks, circumstances(ageMs)), sent, answer)
    },
    pausesCalled: () => called,
    /** True while this instance writes a pause. False after 5 s, because the write then counts as blocked by a lock. */
    isPausing: () => called > written && lastCalledAgeMs() < pauseWriteMaxMs,
    silentRecords: () => streaks.silentPosts,
  }
}
