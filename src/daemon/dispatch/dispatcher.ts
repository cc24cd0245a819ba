import type { Clock } from '../../clock.ts'
import {
  type Answer,
  type AttemptResult,
  type Claim,
  type ClaimRequest,
  type Demand,
  type Outcome,
  type PollJob,
  type Slot,
  type Submission,
  type TokenVerdict,
  type TrialVerdict,
  wasSuspended,
} from '../../model.ts'
import { allocateSlots, type Balance, freshBalance, type Spending } from './allocateSlots.ts'
import { createInHand, createLostClaims, type LostClaim } from './inHand.ts'
import {
  heardNothing,
  type Interpretation,
  interpretAttempt,
  interpretTrial,
  type JudgedTrial,
  withoutSilence,
} from './interpretAttempt.ts'
import { lookAgainMs, untilMore, untilPauseEnds } from './lookAgain.ts'
import { nothing, type Work } from './outcomeWriter.ts'
import type { Permit, SlotPool } from './slotPool.ts'

export interface DispatcherDeps {
  clock: Clock
  capacity: number
  windowMs: number
  maxInFlight: number
  slotPool: SlotPool
  readDemand(most: number): Promise<Demand>
  /** What was seen before anything was decided on it. */
  onDemand(demand: Demand): void
  /** @param onCommit called as its COMMIT leaves: what fails before is known to be void */
  claim(request: ClaimRequest, onCommit: (submissions: readonly Submission[]) => void): Promise<Claim>
  /** Whether others still believe that this instance lives: what is claimed must be on the wire before they do not. */
  mayClaim(): boolean
  /** Gives back what a claim took that was not sent. @returns whether it is over with it; else it is asked again */
  unclaim(claimId: string): Promise<boolean>
  /** Claims the right to the trial. @returns slots for `permits`; null where another has it, or no slot is free */
  claimTrial(permits: number): Promise<Slot[] | null>
  token(): Promise<TokenVerdict>
  /** The service refused the token. */
  onTokenRefused(accessToken: string): void
  /** Whether a 401 says no more than that the token's time was up. */
  isRefusedForAge(accessToken: string, answer: Answer): boolean
  submit(submission: Submission, accessToken: string, isValid: () => boolean): Promise<AttemptResult>
  poll(submission: Submission, accessToken: string, isValid: () => boolean): Promise<AttemptResult>
  /** Asks the service about something that does not exist. @returns null where the question never left */
  ask(accessToken: string, isValid: () => boolean): Promise<Answer | null>
  judgeTrial(answer: Answer): TrialVerdict
  /** By which a refusal is known again; null where the service itself judges. */
  fingerprint(answer: Answer): string | null
  /** How a request ended, by the names that the metrics use. */
  outcomeOf(answer: Answer): Outcome
  writeOutcome(work: Work): Promise<void>
  newId(): string
  onWaited(waitedMs: number): void
  /** A step that was worked out. */
  onAttempted(submission: Submission, attempted: AttemptResult, accessToken: string): void
  /** A piece of work is through: there is room for another. */
  onRoom(): void
  /** The loop could not do its work; it tries again. */
  onFailed(error: unknown): void
}

/** A request on the wire. */
interface Piece {
  submission: Submission
  job: PollJob | null
  permit: Permit
  accessToken: string
  /** Since before its slot was asked for. */
  ageMs: () => number
  /** Its answer says whether the pauses are over: a trial, or the first record after it. */
  trial: boolean
  working: Promise<AttemptResult>
}

export interface Dispatcher {
  /**
   * Decides once what the free slots are spent on, and puts it on the wire.
   *
   * @returns after how many milliseconds to look again, unless woken before
   */
  runOnce(): Promise<number>
  /** The polls that are in hand, for their heartbeat. */
  pollsInHand(): PollJob[]
  inFlight(): number
  /** The records of which it is not known, or not written yet, what became of them. */
  unsettled(): { submissionId: string; outboxId: string; transactionId: string | null }[]
  /** Whether a submission that is being sent is in this process's hand, on the wire or by a claim that was lost. */
  holds(submission: Pick<Submission, 'id' | 'claimId'>): boolean
  /** The claims of which nobody knows yet whether they took place. */
  lostClaims(): LostClaim[]
  /** How long the oldest poll was overdue at the last look, milliseconds. */
  pollOverdueMs(): number
  /** Looks once for what became of the lost claims. */
  recoverClaims(): Promise<void>
  /** Resolves when nothing is on the wire and all outcomes are written. */
  drained(): Promise<void>
}

/** Others were quicker, or hold the polls that are due: there is no signal for when they are through. */
const tookNothingMs = 50

/** A pause that takes longer to be written is held up by a lock on its record: the others do not wait for that. */
const pauseWriteMostMs = 5_000

/** How far to count what waits: further changes little in the price of a poll, and counting would cost more than sending. */
export const readyCountMost = 1_000

/** So many claims may be lost at once: more would only take records out of others' hands. */
const lostClaimsMost = 4

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const inHand = createInHand(deps)
  const lost = createLostClaims({ nowMs: deps.clock.nowMs, unclaim: deps.unclaim })
  let balance: Balance = freshBalance(deps.capacity, deps.clock.nowMs())
  let heard = heardNothing
  let lastTrialWasPoll = false
  let permitsFree = 0
  let pollOverdueMs = 0
  /** Answers that called for a pause, and how many of those pauses are written. */
  let pausesCalled = 0
  let pausesWritten = 0
  let lastCalledAgeMs = () => 0

  /** The ledger counts these among the polls that are due, too. */
  const duePollsInHand = () => inHand.pollsInHand().length - inHand.rarePolls()

  async function runOnce(): Promise<number> {
    await lost.recover()
    if (deps.slotPool.hasReturnable()) void deps.writeOutcome(nothing)
    // A pause that is being written stops this instance at once: neither a token nor a record goes for nothing.
    if (pausesCalled > pausesWritten && lastCalledAgeMs() < pauseWriteMostMs) return tookNothingMs
    const seen = pausesCalled
    const room = deps.maxInFlight - inHand.inFlight()
    if (room <= 0 || !deps.mayClaim() || lost.list().length >= lostClaimsMost) return lookAgainMs
    const most = Math.max(room, readyCountMost) + inHand.pollsInHand().length
    const demand = await deps.readDemand(most)
    if (pausesCalled > seen) return tookNothingMs
    deps.onDemand(demand)
    permitsFree = demand.permitsFree
    pollOverdueMs = demand.pollOverdueMs
    if (demand.pauses.some(({ leftMs }) => leftMs === null || leftMs > 0)) return untilPauseEnds(demand.pauses)
    if (demand.pauses.length > 0) return sendTrial(demand)

    const spending = allocateSlots({
      nowMs: deps.clock.nowMs(),
      windowMs: deps.windowMs,
      capacity: deps.capacity,
      slotsFree: demand.permitsFree + deps.slotPool.available(),
      wireRoom: room,
      submissionsReady: Math.min(demand.submissionsReady, recordsMax(demand)),
      pollsDue: Math.max(0, demand.pollsDue - duePollsInHand()),
      rarePollsDue: Math.max(0, demand.rarePollsDue - inHand.rarePolls()),
      oldestPollOverdueMs: demand.pollOverdueMs,
      balance,
    })
    balance = spending.balance
    if (spending.submissions + spending.polls + spending.rarePolls === 0) return untilMore(demand, spending.againInMs)

    const token = await readyToken(demand)
    if (token.kind === 'wait') return token.ms
    if (pausesCalled > seen) return tookNothingMs
    const begun = await claimAndBegin({ ...spending, trial: false }, token.accessToken)
    return begun === 0 ? tookNothingMs : 0
  }

  /** How many records may go now: one after a pause, and while some go unanswered no new ones in their place. */
  function recordsMax({ proof }: Demand): number {
    if (proof !== 'none') return proof === 'wanted' ? 1 : 0
    return Math.max(0, deps.maxInFlight - inHand.sending().length - heard.silentRecords)
  }

  /** The pauses may be over. A due poll shows it, or a question about nothing; never a record, which it might cost. */
  async function sendTrial(demand: Demand): Promise<number> {
    if (demand.permitsFree + deps.slotPool.available() === 0) return demand.nextSlotMs ?? lookAgainMs
    const token = await readyToken(demand)
    if (token.kind === 'wait') return token.ms
    // Turn and turn about: a transaction whose poll alone goes wrong must not hold everybody.
    lastTrialWasPoll = !lastTrialWasPoll && demand.pollsDue > duePollsInHand()
    const begun = lastTrialWasPoll
      ? await claimAndBegin({ submissions: 0, polls: 1, rarePolls: 0, trial: true }, token.accessToken)
      : await askAndFollow(token.accessToken)
    return begun === 0 ? tookNothingMs : 0
  }

  async function readyToken(
    demand: Demand,
  ): Promise<{ kind: 'token'; accessToken: string } | { kind: 'wait'; ms: number }> {
    const token = await deps.token()
    if (token.kind === 'token') return token
    if (token.kind === 'no-slot') return { kind: 'wait', ms: demand.nextSlotMs ?? lookAgainMs }
    void deps.writeOutcome({ ...nothing, pauses: [token.pause] })
    return { kind: 'wait', ms: lookAgainMs }
  }

  async function claimAndBegin(
    {
      submissions,
      polls,
      rarePolls,
      trial,
    }: Pick<Spending, 'submissions' | 'polls' | 'rarePolls'> & { trial: boolean },
    accessToken: string,
  ): Promise<number> {
    const id = deps.newId()
    const ageMs = deps.clock.stopwatch()
    const permits = Math.max(0, submissions + polls + rarePolls - deps.slotPool.available())
    const request = { id, submissions, polls, rarePolls, permits, trial }
    const claim = await deps.claim(request, (taken) => lost.remember(id, taken))
    deps.slotPool.add(claim.slots, ageMs)
    // What took too long to be claimed stays lost, and is given back with the next round.
    const isTimely = deps.mayClaim()
    if (isTimely) lost.forget(id)
    for (const submission of isTimely ? claim.submissions : []) {
      deps.onWaited(submission.waitedMs)
      const permit = deps.slotPool.acquire('submissions')
      const mayLeave = () => permit.isValid() && deps.mayClaim()
      const working = deps.submit(submission, accessToken, mayLeave)
      const piece = { submission, job: null, permit, accessToken, ageMs, trial: claim.proves, working }
      inHand.follow(piece, () => finish(piece))
    }
    for (const { submission, job } of claim.polls) {
      const permit = deps.slotPool.acquire('polls')
      const working = deps.poll(submission, accessToken, permit.isValid)
      const piece = { submission, job, permit, accessToken, ageMs, trial, working }
      inHand.follow(piece, () => finish(piece))
    }
    return claim.submissions.length + claim.polls.length
  }

  /** Asks the service about something that does not exist, to see whether it answers. @returns how many requests that is */
  async function askAndFollow(accessToken: string): Promise<number> {
    const ageMs = deps.clock.stopwatch()
    const slots = await deps.claimTrial(deps.slotPool.available() > 0 ? 0 : 1)
    if (slots === null) return 0
    deps.slotPool.add(slots, ageMs)
    const permit = deps.slotPool.acquire('others')
    inHand.follow(null, () => finishTrial(permit, accessToken, ageMs))
    return 1
  }

  async function finishTrial(permit: Permit, accessToken: string, ageMs: () => number): Promise<void> {
    const answer = await deps.ask(accessToken, permit.isValid).finally(permit.release)
    const asked = answer === null || wasSuspended(answer) ? null : { answer, judged: judge(answer, accessToken) }
    await write(interpretTrial(asked, heard, { ...deps, permitsFree, ageMs }), accessToken)
  }

  async function finish({ submission, job, permit, accessToken, ageMs, trial, working }: Piece): Promise<void> {
    const attempted = await working.finally(permit.release)
    deps.onAttempted(submission, attempted, accessToken)
    const { step, answer } = attempted
    inHand.gotId(submission, step.change.transactionId ?? submission.transactionId)
    const fingerprint = answer === null ? null : deps.fingerprint(answer)
    const outcome = answer === null ? null : deps.outcomeOf(answer)
    const isJudged = trial && job !== null && step.pause === null
    const judged = isJudged && answer !== null && !wasSuspended(answer) ? judge(answer, accessToken) : null
    const ended = { submission, job, trial, attempted, fingerprint, outcome, judged }
    await write(interpretAttempt(ended, heard, { ...deps, permitsFree, ageMs }), accessToken)
  }

  function judge(answer: Answer, accessToken: string): JudgedTrial {
    const verdict = deps.judgeTrial(answer)
    const isTokenOutlived = verdict.kind === 'token-refused' && deps.isRefusedForAge(accessToken, answer)
    return { verdict, isTokenOutlived }
  }

  async function write(interpretation: Interpretation, accessToken: string): Promise<void> {
    heard = interpretation.heard
    if (interpretation.isTokenRefused) deps.onTokenRefused(accessToken)
    const calls = interpretation.work.pauses.length
    pausesCalled += calls
    if (calls > 0) lastCalledAgeMs = deps.clock.stopwatch()
    await deps.writeOutcome(interpretation.work).finally(() => {
      pausesWritten += calls
    })
    // Only now: until the pause is written, new records must not take the places of those that went unanswered.
    if (interpretation.endsSilence) heard = withoutSilence(heard)
  }

  return {
    runOnce,
    pollsInHand: inHand.pollsInHand,
    inFlight: inHand.inFlight,
    unsettled: () =>
      [
        ...inHand.held(),
        ...lost.list().flatMap((claim) => claim.submissions.map((submission) => ({ submission, transactionId: null }))),
      ].map(({ submission: { id, outboxId }, transactionId }) => ({ submissionId: id, outboxId, transactionId })),
    holds: ({ id, claimId }) =>
      (claimId !== null && lost.has(claimId)) ||
      inHand.sending().some((each) => each.id === id && each.claimId === claimId),
    lostClaims: lost.list,
    recoverClaims: lost.recover,
    pollOverdueMs: () => pollOverdueMs,
    drained: inHand.drained,
  }
}
