import type { Clock } from '../clock.ts'
import type {
  Answer,
  PauseCall,
  PauseReason,
  PollJob,
  Settlement,
  Slot,
  Submission,
  Transition,
  Worked,
} from '../record.ts'
import { type Balance, decide, freshBalance } from './decide.ts'
import { createLostClaims, type LostClaim } from './lostClaims.ts'
import type { Permit, Purse } from './purse.ts'

/** What could be sent now and when there is more, over all instances. */
export interface Demand {
  submissionsReady: number
  pollsDue: number
  pollOverdueMs: number
  permitsFree: number
  nextDueMs: number | null
  nextSlotMs: number | null
  pauses: { reason: PauseReason; leftMs: number | null }[]
}

export interface Claim {
  submissions: (Submission & { waitedMs: number })[]
  polls: { submission: Submission; job: PollJob }[]
  slots: Slot[]
}

interface ClaimRequest {
  id: string
  submissions: number
  polls: number
  permits: number
  probe: boolean
}

export type TokenVerdict =
  | { kind: 'token'; accessToken: string }
  | { kind: 'pause'; pause: PauseCall }
  | { kind: 'no-slot' }

export interface DispatcherDeps {
  clock: Clock
  capacity: number
  windowMs: number
  maxInFlight: number
  purse: Purse
  readDemand(most: number): Promise<Demand>
  claim(request: ClaimRequest): Promise<Claim>
  /** Whether others still believe that this instance lives: what is claimed must be on the wire before they do not. */
  mayClaim(): boolean
  /** Gives back what a claim took that was not sent. @returns whether it is over with it; else it is asked again */
  unclaim(claimId: string): Promise<boolean>
  token(): Promise<TokenVerdict>
  /** The service refused the token. */
  refused(accessToken: string): void
  submit(submission: Submission, accessToken: string, isGood: () => boolean): Promise<Worked>
  poll(submission: Submission, accessToken: string, isGood: () => boolean): Promise<Worked>
  settle(work: Omit<Settlement, 'slots' | 'transitions'> & { transition: Transition | null }): Promise<void>
  newId(): string
  waited(waitedMs: number): void
  /** A step that was worked out; for logs and metrics. */
  worked(submission: Submission, worked: Worked): void
  /** The loop could not do its work; it tries again. */
  failed(error: unknown): void
}

/** A request on the wire. */
interface Piece {
  submission: Submission
  job: PollJob | null
  permit: Permit
  accessToken: string
  /** It feels the way: its answer says whether the pauses are over. */
  probe: boolean
  working: Promise<Worked>
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
  /** Called whenever a piece of work is through. */
  onRoom(listener: () => void): void
}

/** Others were quicker, or hold the polls that are due: there is no signal for when they are through. */
const tookNothingMs = 50

/** So many requests in a row may go unanswered before nobody sends for a while. */
const silentMost = 5

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
  const lost = createLostClaims({ nowMs: deps.clock.nowMs, unclaim: deps.unclaim })
  let silentInARow = 0
  let permitsFree = 0
  let pollOverdueMs = 0
  let onRoom = () => {}

  async function runOnce(): Promise<number> {
    await lost.recover()
    if (deps.purse.hasSpent()) void deps.settle(nothingBut([]))
    const room = deps.maxInFlight - inFlight.size
    if (room <= 0 || !deps.mayClaim() || lost.list().length >= lostClaimsMost) return lookAgainMs
    const demand = await deps.readDemand(Math.max(room, Math.min(deps.capacity, countMost)) + jobs.size)
    permitsFree = demand.permitsFree
    pollOverdueMs = demand.pollOverdueMs
    const probe = demand.pauses.length > 0
    if (demand.pauses.some(({ leftMs }) => leftMs === null || leftMs > 0)) return untilPauseEnds(demand)

    const spending = decide({
      nowMs: deps.clock.nowMs(),
      windowMs: deps.windowMs,
      capacity: deps.capacity,
      slotsFree: demand.permitsFree + deps.purse.available(),
      wireRoom: probe ? 1 : room,
      submissionsReady: demand.submissionsReady,
      // The ledger counts polls that are in hand as due, too.
      pollsDue: Math.max(0, demand.pollsDue - jobs.size),
      oldestPollOverdueMs: demand.pollOverdueMs,
      balance,
    })
    balance = spending.balance
    if (spending.submissions + spending.polls === 0) return untilMore(demand, spending.againInMs)

    const token = await deps.token()
    if (token.kind === 'no-slot') return demand.nextSlotMs ?? lookAgainMs
    if (token.kind === 'pause') {
      void deps.settle(nothingBut([token.pause]))
      return lookAgainMs
    }
    const begun = await claimAndBegin({ ...spending, probe }, token.accessToken)
    return begun === 0 ? tookNothingMs : 0
  }

  async function claimAndBegin(
    { submissions, polls, probe }: { submissions: number; polls: number; probe: boolean },
    accessToken: string,
  ): Promise<number> {
    const id = deps.newId()
    const ageMs = deps.clock.stopwatch()
    const permits = Math.max(0, submissions + polls - deps.purse.available())
    lost.remember(id)
    const claim = await deps.claim({ id, submissions, polls, permits, probe })
    deps.purse.add(claim.slots, ageMs)
    // What took too long to be claimed stays lost, and is given back with the next round.
    const isTimely = deps.mayClaim()
    if (isTimely) lost.forget(id)
    for (const submission of isTimely ? claim.submissions : []) {
      deps.waited(submission.waitedMs)
      const permit = deps.purse.draw('submission')
      const mayLeave = () => permit.isGood() && deps.mayClaim()
      const working = deps.submit(submission, accessToken, mayLeave)
      begin({ submission, job: null, permit, accessToken, probe, working })
    }
    for (const { submission, job } of claim.polls) {
      const permit = deps.purse.draw('poll')
      const working = deps.poll(submission, accessToken, permit.isGood)
      begin({ submission, job, permit, accessToken, probe, working })
    }
    const begun = claim.submissions.length + claim.polls.length
    return begun
  }

  /** Follows a request on the wire; it counts as in flight until its outcome is written. */
  function begin(piece: Piece): void {
    const journey = finish(piece).catch(deps.failed)
    inFlight.add(journey)
    if (piece.job) jobs.add(piece.job)
    else sending.add(piece.submission)
    void journey.then(() => {
      inFlight.delete(journey)
      if (piece.job) jobs.delete(piece.job)
      else sending.delete(piece.submission)
      onRoom()
    })
  }

  async function finish({ submission, job, permit, accessToken, probe, working }: Piece): Promise<void> {
    const worked = await working.finally(permit.done)
    deps.worked(submission, worked)
    const { step, answer } = worked
    const response = answer?.kind === 'response' ? answer : null
    if (response?.status === 401) deps.refused(accessToken)
    silentInARow = answer !== null && isSilence(answer) ? silentInARow + 1 : 0
    const silent = silentInARow >= silentMost || (probe && silentInARow > 0)
    const pause = step.pause ?? (silent ? silence : null)
    await deps.settle({
      transition: { submission, job, change: step.change, cause: step.cause },
      pauses: pause ? [pause] : [],
      // The first 401 calls for a new token, and proves nothing yet.
      wayIsClear: probe && response !== null && response.status !== 401 && pause === null,
      probeOver: probe,
      remaining: lessThanReckoned(response?.rateRemaining ?? null),
    })
  }

  /** What the service says remains, where that is less than the slots that seemed free: someone else may be spending. */
  function lessThanReckoned(remaining: number | null): number | null {
    return remaining !== null && remaining < permitsFree ? remaining : null
  }

  return {
    runOnce,
    pollsInHand: () => [...jobs],
    inFlight: () => inFlight.size,
    holds: ({ id, claimId }) =>
      (claimId !== null && lost.has(claimId)) ||
      [...sending].some((each) => each.id === id && each.claimId === claimId),
    lostClaims: lost.list,
    recoverClaims: lost.recover,
    pollOverdueMs: () => pollOverdueMs,
    async drained() {
      while (inFlight.size > 0) await Promise.all(inFlight)
    },
    onRoom(listener) {
      onRoom = listener
    },
  }
}

const nothingBut = (pauses: PauseCall[]) => ({
  transition: null,
  pauses,
  wayIsClear: false,
  probeOver: false,
  remaining: null,
})

/** Whether a request left and brought no answer of the service's own: a timeout, a lost connection, a gateway's 502. */
function isSilence(answer: Answer): boolean {
  return answer.kind === 'no-answer' ? answer.sent : answer.status > 500
}

/** Without this pause a service that hangs would, request by request, leave every record in doubt. */
const silence: PauseCall = {
  reason: 'unreachable',
  askedMs: null,
  detail: 'request after request went unanswered; one at a time until the service answers again',
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
