import type { Clock } from '../../clock.ts'
import type { Claims } from '../../ledger/claims.ts'
import type { Claim, ClaimedQuestion, ClaimedSubmission, RequestDemand } from '../../model/dispatch.ts'
import { type Answer, endOfRequest, type Outcome, type TokenVerdict } from '../../model/service.ts'
import type { AttemptResult, PollClaim, Submission } from '../../model/submission.ts'
import type { AllocationBalance } from './allocateRequests.ts'
import { createInFlightTracker, createLostClaimStore } from './inFlight.ts'
import {
  type AnsweredQuestion,
  type AttemptInterpretation,
  interpretAttempt,
  interpretQuestion,
  noSilence,
  refusedTokenAnswer,
  unsentTrialAnswer,
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
  claims: Pick<Claims, 'claim' | 'requeueUnsentClaim' | 'claimTrial'>
  mayClaim(): boolean
  hasHostFault(): boolean
  /** Call it before the claim. The result says, until the request leaves, whether it may be sent. */
  watchHeartbeat(): () => boolean
  token(): Promise<TokenVerdict>
  onTokenRefused(accessToken: string): void
  submit(submission: ClaimedSubmission, accessToken: string, isValid: () => boolean): Promise<AttemptResult>
  poll(submission: Submission, accessToken: string, isValid: () => boolean): Promise<AttemptResult>
  /** Asks for a transaction that the service knows. */
  ask(question: ClaimedQuestion, accessToken: string, isValid: () => boolean): Promise<AnsweredQuestion>
  outcomeOf(answer: Answer): Outcome
  writeOutcome(work: OutcomeToWrite): Promise<void>
  newId(): string
  onAttempted(submission: Submission, attempted: AttemptResult, accessToken: string): void
  onRoom(): void
  onFailed(error: unknown): void
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

  const own = (): InstanceState => ({
    nowMs: deps.clock.nowMs(),
    windowMs: deps.windowMs,
    maxInFlight: deps.maxInFlight,
    inFlight: requests.count(),
    recordsInFlight: requests.sending().length,
    isPausing: answers.isPausing(),
    mayClaim: deps.mayClaim(),
    hasHostFault: deps.hasHostFault(),
    silentRecords: answers.silentRecords(),
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
      void deps.writeOutcome({ ...emptyOutcome, answers: [refusedTokenAnswer(token.pause)] })
      return refusedTokenWaitMs
    }
    if (isOutdated()) return retrySoonMs
    if ((await begin(plan, token.accessToken)) > 0) return 0
    // Nothing can be the trial, or another instance has it.
    return plan.kind === 'trial' ? roundWaitMaxMs : retrySoonMs
  }

  async function begin(plan: Exclude<RoundPlan, { kind: 'wait' }>, accessToken: string): Promise<number> {
    const ageMs = deps.clock.stopwatch()
    const id = deps.newId()
    const maySend = deps.watchHeartbeat()
    const isTrial = plan.kind === 'trial'
    const onCommit = (taken: readonly Submission[]) => lost.remember(id, taken)
    const claim = await (plan.kind === 'trial'
      ? deps.claims.claimTrial(id, onCommit)
      : deps.claims.claim(
          { id, submissions: plan.submissions, polls: plan.polls, rarePolls: plan.rarePolls },
          onCommit,
        ))
    seen.free -= claim.submissions.length + claim.polls.length + (claim.question === null ? 0 : 1)
    // A claim that took too long counts as lost: the next round requeues its records unsent.
    const isTimely = maySend()
    if (isTimely) lost.forget(id)
    else if (claim.submissions.length > 0)
      void deps.writeOutcome({
        ...emptyOutcome,
        unsentRequests: claim.submissions.map(({ requestId }) => requestId),
        answers: isTrial ? claim.submissions.map(({ requestId }) => unsentTrialAnswer(requestId)) : [],
      })
    return send(claim, { isTrial, isTimely, maySend, accessToken, ageMs })
  }

  function send({ submissions, polls, question, mayLeave }: Claim, sending: Sending): number {
    const { isTrial, isTimely, maySend, accessToken, ageMs } = sending
    const follow = (sent: SentAttempt, working: Promise<AttemptResult>) =>
      requests.follow(sent, () => answers.ended(sent, working))
    for (const submission of isTimely ? submissions : []) {
      const { requestId } = submission
      const working = deps.submit(submission, accessToken, () => mayLeave() && maySend())
      follow({ submission, poll: null, isTrial, requestId, accessToken, ageMs }, working)
    }
    for (const { submission, poll } of polls) {
      const { requestId } = poll
      const working = deps.poll(submission, accessToken, mayLeave)
      follow({ submission, poll, isTrial, requestId, accessToken, ageMs }, working)
    }
    if (question !== null)
      requests.follow({ submission: null, poll: null }, () =>
        answers.questionEnded(
          { requestId: question.requestId, accessToken, ageMs },
          deps.ask(question, accessToken, mayLeave),
        ),
      )
    return submissions.length + polls.length + (question === null ? 0 : 1)
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
  /** True if the request is the trial of the breaker. */
  isTrial: boolean
}

interface Sending extends Omit<Sent, 'requestId'> {
  isTrial: boolean
  isTimely: boolean
  maySend: () => boolean
}

const openingWriteMaxMs = 5_000

/** If the breaker waits for a person, polls go on, and nothing else keeps them from asking for a token each second. */
const refusedTokenWaitMs = 5_000

function createAnswerHandling(deps: DispatcherDeps, seen: Readonly<{ free: number }>) {
  let streaks = noSilence
  let [called, written] = [0, 0]
  let lastCalledAgeMs = () => 0

  const context = (ageMs: () => number) => ({ ...deps, free: seen.free, ageMs })

  async function write(interpretation: AttemptInterpretation, sent: Sent, answer: Answer | null): Promise<void> {
    streaks = interpretation.streaks
    if (interpretation.isTokenRefused) deps.onTokenRefused(sent.accessToken)
    const calls = interpretation.work.answers.filter(({ sign }) => sign.kind === 'fails').length
    called += calls
    if (calls > 0) lastCalledAgeMs = deps.clock.stopwatch()
    await deps.writeOutcome({ ...interpretation.work, ...outcomeOfRequest(sent, answer) }).finally(() => {
      written += calls
    })
    // The open breaker now holds records back, so unanswered requests are counted from zero again.
    if (interpretation.shouldResetStreaks) streaks = noSilence
  }

  return {
    async ended(sent: SentAttempt, working: Promise<AttemptResult>): Promise<void> {
      const { submission, poll, requestId, isTrial, accessToken, ageMs } = sent
      const attempted = await working
      deps.onAttempted(submission, attempted, accessToken)
      const { answer } = attempted
      const outcome = answer === null ? null : deps.outcomeOf(answer)
      const attempt = { submission, poll, requestId, isTrial, attempted, outcome }
      await write(interpretAttempt(attempt, streaks, context(ageMs)), sent, answer)
    },
    async questionEnded(sent: Sent, asking: Promise<AnsweredQuestion>): Promise<void> {
      const { requestId, ageMs } = sent
      const asked = await asking
      await write(interpretQuestion({ requestId, ...asked }, streaks, context(ageMs)), sent, asked.answer)
    },
    pausesCalled: () => called,
    /** True while this instance opens the breaker. False after 5 s, because the write then counts as blocked by a lock. */
    isPausing: () => called > written && lastCalledAgeMs() < openingWriteMaxMs,
    silentRecords: () => streaks.submissions,
  }
}
