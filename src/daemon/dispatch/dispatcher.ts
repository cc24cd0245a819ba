import type { Clock } from '../../clock.ts'
import type {
  Answer,
  AttemptResult,
  Claim,
  ClaimRequest,
  Demand,
  OutcomeBatch,
  PauseCall,
  PollJob,
  Slot,
  Submission,
  TokenVerdict,
  Transition,
  TrialVerdict,
} from '../../model.ts'
import { allocateSlots, type Balance, freshBalance, type Spending } from './allocateSlots.ts'
import { isSilence, passageOf, refusalOf } from './hearing.ts'
import { createLostClaims, type LostClaim } from './lostClaims.ts'
import { nothing } from './outcomeWriter.ts'
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
  writeOutcome(work: Omit<OutcomeBatch, 'slots' | 'transitions'> & { transition: Transition | null }): Promise<void>
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

/** So many requests in a row may go unanswered before nobody sends for a while; so many records, where fewer go at once. */
const silentMax = 5

/** How far to count what waits: further changes no decision, and counting a whole window would cost more than sending. */
const countMost = 1_000

/** So many claims may be lost at once: more would only take records out of others' hands. */
const lostClaimsMost = 4

/** Other instances' work and an operator's commands are noticed at the latest after this. */
const lookAgainMs = 1_000

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const inFlight = new Set<Promise<void>>()
  const jobs = new Set<PollJob>()
  let balance: Balance = freshBalance(deps.capacity, deps.clock.nowMs())
  const sending = new Set<Submission>()
  /** What is on the wire or being written, with the id that the service has given by now. */
  const inHand = new Map<Submission, string | null>()
  const lost = createLostClaims({ nowMs: deps.clock.nowMs, unclaim: deps.unclaim })
  const silent = { requests: 0, records: 0 }
  let lastTrialWasPoll = false
  let tokensRefused = 0
  let rareInHand = 0
  let permitsFree = 0
  let pollOverdueMs = 0

  async function runOnce(): Promise<number> {
    await lost.recover()
    if (deps.slotPool.hasReturnable()) void deps.writeOutcome(nothing)
    const room = deps.maxInFlight - inFlight.size
    if (room <= 0 || !deps.mayClaim() || lost.list().length >= lostClaimsMost) return lookAgainMs
    const demand = await deps.readDemand(Math.max(room, Math.min(deps.capacity, countMost)) + jobs.size)
    deps.onDemand(demand)
    permitsFree = demand.permitsFree
    pollOverdueMs = demand.pollOverdueMs
    if (demand.pauses.some(({ leftMs }) => leftMs === null || leftMs > 0)) return untilPauseEnds(demand)
    if (demand.pauses.length > 0) return feelTheWay(demand)

    const spending = allocateSlots({
      nowMs: deps.clock.nowMs(),
      windowMs: deps.windowMs,
      capacity: deps.capacity,
      slotsFree: demand.permitsFree + deps.slotPool.available(),
      wireRoom: room,
      submissionsReady: Math.min(demand.submissionsReady, recordsMax(demand)),
      // The ledger counts polls that are in hand as due, too.
      pollsDue: Math.max(0, demand.pollsDue - (jobs.size - rareInHand)),
      rarePollsDue: Math.max(0, demand.rarePollsDue - rareInHand),
      oldestPollOverdueMs: demand.pollOverdueMs,
      balance,
    })
    balance = spending.balance
    if (spending.submissions + spending.polls + spending.rarePolls === 0) return untilMore(demand, spending.againInMs)

    const token = await readyToken(demand)
    if (token.kind === 'wait') return token.ms
    const begun = await claimAndBegin({ ...spending, trial: false }, token.accessToken)
    return begun === 0 ? tookNothingMs : 0
  }

  /** How many records may go now: one after a pause, and while some go unanswered no new ones in their place. */
  function recordsMax({ proof }: Demand): number {
    if (proof !== 'none') return proof === 'wanted' ? 1 : 0
    return Math.max(0, deps.maxInFlight - sending.size - silent.records)
  }

  /** The pauses may be over. A due poll shows it, or a question about nothing; never a record, which it might cost. */
  async function feelTheWay(demand: Demand): Promise<number> {
    if (demand.permitsFree + deps.slotPool.available() === 0) return demand.nextSlotMs ?? lookAgainMs
    const token = await readyToken(demand)
    if (token.kind === 'wait') return token.ms
    // Turn and turn about: a transaction whose poll alone goes wrong must not hold everybody.
    lastTrialWasPoll = !lastTrialWasPoll && demand.pollsDue > jobs.size - rareInHand
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
      const permit = deps.slotPool.acquire('submission')
      const mayLeave = () => permit.isValid() && deps.mayClaim()
      const working = deps.submit(submission, accessToken, mayLeave)
      begin({ submission, job: null, permit, accessToken, trial: claim.proves, working })
    }
    for (const { submission, job } of claim.polls) {
      const permit = deps.slotPool.acquire('poll')
      const working = deps.poll(submission, accessToken, permit.isValid)
      begin({ submission, job, permit, accessToken, trial, working })
    }
    const begun = claim.submissions.length + claim.polls.length
    return begun
  }

  /** Asks the service about something that does not exist, to see whether it answers. @returns how many requests that is */
  async function askAndFollow(accessToken: string): Promise<number> {
    const ageMs = deps.clock.stopwatch()
    const slots = await deps.claimTrial(deps.slotPool.available() > 0 ? 0 : 1)
    if (slots === null) return 0
    deps.slotPool.add(slots, ageMs)
    follow(finishTrial(deps.slotPool.acquire('poll'), accessToken), () => {})
    return 1
  }

  async function finishTrial(permit: Permit, accessToken: string): Promise<void> {
    const answer = await deps.ask(accessToken, permit.isValid).finally(permit.release)
    const { clears, pause } = answer === null ? tellsNothing : trialResult(answer, accessToken)
    await deps.writeOutcome({
      ...nothing,
      pauses: pause ? [pause] : [],
      trialSucceeded: clears,
      trialEnded: true,
      remaining: remainingIn(answer),
    })
  }

  function trialResult(answer: Answer, accessToken: string): { clears: boolean; pause: PauseCall | null } {
    const verdict = deps.judgeTrial(answer)
    if (verdict.kind !== 'token-refused') tokensRefused = 0
    else if (!deps.isRefusedForAge(accessToken, answer)) tokensRefused++
    switch (verdict.kind) {
      case 'clear':
        return { clears: true, pause: null }
      case 'pause':
        return { clears: false, pause: verdict.pause }
      case 'token-refused':
        deps.onTokenRefused(accessToken)
        return tokensRefused > 1 ? { clears: false, pause: verdict.pause } : tellsNothing
      default:
        return verdict satisfies never
    }
  }

  /** Follows a piece of work until its outcome is written. */
  function begin(piece: Piece): void {
    const { job, submission } = piece
    const rare = job !== null && submission.polledRarely ? 1 : 0
    if (job) jobs.add(job)
    else sending.add(submission)
    inHand.set(submission, submission.transactionId)
    rareInHand += rare
    follow(finish(piece), () => {
      if (job) jobs.delete(job)
      else sending.delete(submission)
      inHand.delete(submission)
      rareInHand -= rare
    })
  }

  /** A request counts as in flight until its outcome is written. */
  function follow(finishing: Promise<void>, done: () => void): void {
    const attempt = finishing.catch(deps.onFailed)
    inFlight.add(attempt)
    void attempt.then(() => {
      inFlight.delete(attempt)
      done()
      deps.onRoom()
    })
  }

  async function finish({ submission, job, permit, accessToken, trial, working }: Piece): Promise<void> {
    const onAttempted = await working.finally(permit.release)
    deps.onAttempted(submission, onAttempted, accessToken)
    const { step, answer } = onAttempted
    inHand.set(submission, step.change.transactionId ?? submission.transactionId)
    if (answer?.kind === 'response' && answer.status === 401) deps.onTokenRefused(accessToken)
    const fingerprint = answer === null ? null : deps.fingerprint(answer)
    const isTrial = trial && job !== null
    const trialSucceeded = isTrial && answer !== null && step.pause === null && trialResult(answer, accessToken).clears
    // A poll as a trial may be refused for its transaction's sake: the question that comes next speaks for all.
    const pause = isTrial
      ? null
      : (step.pause ?? (answer === null ? null : hearSilence(answer, step.cause, job === null, trial)))
    await deps.writeOutcome({
      transition: { submission, job, change: step.change, cause: step.cause },
      pauses: pause ? [pause] : [],
      passages: job === null ? passageOf(submission, onAttempted, fingerprint) : [],
      refusals: job === null ? refusalOf(submission, onAttempted, fingerprint) : [],
      trialSucceeded,
      trialEnded: trial,
      remaining: remainingIn(answer),
    })
    // Only now: until the pause is written, new records must not take the places of those that went unanswered.
    if (pause !== null) Object.assign(silent, { requests: 0, records: 0 })
  }

  /**
   * Counts the requests in a row that went unanswered, and records for themselves: a service may answer polls and hang
   * on every record. The record that goes first after a trial is proof enough alone.
   */
  function hearSilence(answer: Answer, summary: string, isRecord: boolean, trial: boolean): PauseCall | null {
    const isSilent = isSilence(answer)
    silent.requests = isSilent ? silent.requests + 1 : 0
    if (isRecord) silent.records = isSilent ? silent.records + 1 : 0
    const isLong = silent.requests >= silentMax || silent.records >= Math.min(silentMax, deps.maxInFlight)
    if (!isLong && !(trial && isSilent)) return null
    const call = answer.kind === 'response' ? answeredInstead(summary) : silence
    return trial && isRecord && !call.answered ? { ...call, patient: true } : call
  }

  /** What the service says remains, where that is less than the slots that seemed free: someone else may be spending. */
  function remainingIn(answer: Answer | null): number | null {
    const remaining = answer?.kind === 'response' ? answer.rateRemaining : null
    return remaining !== null && remaining < permitsFree ? remaining : null
  }

  return {
    runOnce,
    pollsInHand: () => [...jobs],
    inFlight: () => inFlight.size,
    unsettled: () =>
      [...inHand, ...lost.list().flatMap((claim) => claim.submissions.map((each) => [each, null] as const))].map(
        ([{ id, outboxId }, transactionId]) => ({ submissionId: id, outboxId, transactionId }),
      ),
    holds: ({ id, claimId }) =>
      (claimId !== null && lost.has(claimId)) ||
      [...sending].some((each) => each.id === id && each.claimId === claimId),
    lostClaims: lost.list,
    recoverClaims: lost.recover,
    pollOverdueMs: () => pollOverdueMs,
    async drained() {
      while (inFlight.size > 0) await Promise.all(inFlight)
    },
  }
}

const tellsNothing = { clears: false, pause: null }

/** Without this pause a service that hangs would, request by request, leave every record in doubt. */
const silence: PauseCall = {
  reason: 'unreachable',
  askedMs: null,
  detail:
    'request after request went unanswered; no record is sent until the service answers a question (outboxd check)',
}

/** Something answers, as a gateway does, and not the service: perhaps for these records alone. */
function answeredInstead(summary: string): PauseCall {
  const detail = `request after request brought no answer of the service’s own, the last: ${summary}; no record is sent until the service answers a question (outboxd check)`
  return { ...silence, detail, answered: true }
}

function untilMore(
  { submissionsReady, pollsDue, nextDueMs, nextSlotMs }: Demand,
  againInMs: number | undefined,
): number {
  const more = submissionsReady + pollsDue > 0 ? nextSlotMs : nextDueMs
  return Math.max(1, Math.min(lookAgainMs, more ?? lookAgainMs, againInMs ?? lookAgainMs))
}

function untilPauseEnds({ pauses }: Demand): number {
  const longest = Math.max(...pauses.map(({ leftMs }) => leftMs ?? lookAgainMs))
  return Math.max(1, Math.min(lookAgainMs, longest))
}
