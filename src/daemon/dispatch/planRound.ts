import type { RequestDemand } from '../../model/dispatch.ts'
import { isPauseOfBreaker } from '../../model/service.ts'

export type RoundPlan = { balance: AllocationBalance | null } & (
  | { kind: 'wait'; forMs: number }
  | { kind: 'trial' }
  | { kind: 'send'; submissions: number; polls: number; rarePolls: number }
)

export interface InstanceState {
  nowMs: number
  windowMs: number
  maxInFlight: number
  inFlight: number
  recordsInFlight: number
  isPausing: boolean
  mayClaim: boolean
  /** This host lacked what a request needs. Then one request at a time shows whether it still does. */
  hasHostFault: boolean
  silentRecords: number
  balance: AllocationBalance | null
}

/** The longest wait until this instance notices what other instances and operators did. */
export const roundWaitMaxMs = 1_000

/** The wait if nothing is planned. An instance that captures a record wakes its own dispatch. */
const idleWaitMs = 2_000

/**
 * The wait if other instances took the requests or the due polls, because no signal says when these instances are done.
 */
export const retrySoonMs = 50

export function blockedWaitMs(instance: InstanceState): number | null {
  if (instance.isPausing) return retrySoonMs
  if (inFlightRoom(instance) <= 0 || !instance.mayClaim) return roundWaitMaxMs
  return null
}

/**
 * Plans one round: wait, send a trial, or send.
 *
 * Sending is delayed in these cases, checked in this order:
 *
 * - This instance is still opening the breaker.
 * - Its heartbeat is late, so other instances may soon take it for dead.
 * - The ledger has pauses. When the breaker's is over, only its trial is sent; after a GET that worked, polls, too.
 */
export function planRound(instance: InstanceState, demand: RequestDemand): RoundPlan {
  const { pauses, breaker, free, nextFreeMs } = demand
  const wait = (forMs: number, balance = instance.balance): RoundPlan => ({ kind: 'wait', forMs, balance })
  const withoutLookMs = blockedWaitMs(instance)
  if (withoutLookMs !== null) return wait(withoutLookMs)
  const lasting = pauses.filter(({ reason }) => !isPauseOfBreaker(reason))
  if (lasting.length > 0) return wait(untilPauseEnds(lasting))
  if (breaker !== null) {
    const isDue = breaker.leftMs !== null && breaker.leftMs <= 0
    if (!isDue && !breaker.hasGetWorked) return wait(untilPauseEnds([breaker]))
    if (free === 0) return wait(untilFreeMs(nextFreeMs))
    if (isDue && (!breaker.hasGetWorked || demand.submissionsReady > 0))
      return { kind: 'trial', balance: instance.balance }
  }
  const { submissions, polls, rarePolls, againInMs, balance } = allocateRequests({
    nowMs: instance.nowMs,
    windowMs: instance.windowMs,
    limit: demand.limit,
    free,
    inFlightRoom: inFlightRoom(instance),
    submissionsReady: breaker === null ? Math.min(demand.submissionsReady, recordsMax(instance)) : 0,
    pollsDue: demand.pollsDue,
    rarePollsDue: demand.rarePollsDue,
    oldestPollOverdueMs: demand.pollOverdueMs,
    balance: instance.balance ?? initialAllocationBalance(demand.limit, instance.nowMs),
  })
  if (submissions + polls + rarePolls === 0) return wait(untilMore(demand, againInMs), balance)
  return { kind: 'send', submissions, polls, rarePolls, balance }
}

const inFlightRoom = ({ maxInFlight, inFlight, hasHostFault }: InstanceState): number =>
  (hasHostFault ? 1 : maxInFlight) - inFlight

/** Unanswered records keep their places until the breaker is open, so that new records do not follow them. */
const recordsMax = ({ maxInFlight, recordsInFlight, silentRecords }: InstanceState): number =>
  Math.max(0, maxInFlight - recordsInFlight - silentRecords)

function untilMore(
  { submissionsReady, pollsDue, nextDueMs, nextFreeMs }: RequestDemand,
  againInMs: number | undefined,
): number {
  if (submissionsReady + pollsDue === 0 && nextDueMs === null) return idleWaitMs
  const more = submissionsReady + pollsDue > 0 ? nextFreeMs : nextDueMs
  return Math.max(1, Math.min(roundWaitMaxMs, more ?? roundWaitMaxMs, againInMs ?? roundWaitMaxMs))
}

/** At most `roundWaitMaxMs`, because a clock that was set back makes the time wrong. */
export function untilFreeMs(nextFreeMs: number | null): number {
  return Math.min(roundWaitMaxMs, nextFreeMs ?? roundWaitMaxMs)
}

function untilPauseEnds(pauses: readonly { leftMs: number | null }[]): number {
  const longest = Math.max(...pauses.map(({ leftMs }) => leftMs ?? roundWaitMaxMs))
  return Math.max(1, Math.min(roundWaitMaxMs, longest))
}

export interface BudgetDemand {
  readonly nowMs: number
  readonly windowMs: number
  readonly limit: number
  readonly free: number
  readonly inFlightRoom: number
  readonly submissionsReady: number
  readonly pollsDue: number
  /** Due polls of stuck transactions, which `pollsDue` does not count. */
  readonly rarePollsDue: number
  readonly oldestPollOverdueMs: number
  readonly balance: AllocationBalance
}

/** What one allocation leaves to the next, so that the shares hold even if requests become free one at a time. */
export interface AllocationBalance {
  /** The part of a request that polls may still claim, in [0, 1]. */
  readonly owedToPolls: number
  readonly submissionsAllowed: number
  readonly rarePollsAllowed: number
  readonly atMs: number
}

export interface Allocation {
  readonly submissions: number
  readonly polls: number
  readonly rarePolls: number
  /** Time until the next allocation; undefined unless only the pace holds submissions back. */
  readonly againInMs: number | undefined
  readonly balance: AllocationBalance
}

export function initialAllocationBalance(limit: number, nowMs: number): AllocationBalance {
  return { owedToPolls: 0, submissionsAllowed: allowedMax(limit), rarePollsAllowed: 1, atMs: nowMs }
}

/**
 * Decides how free requests are spent.
 *
 * - If polls and submissions wait, polls get 3 of 5 requests, so that due polls do not pile up. Never all, so that
 *   submissions move after an outage. Requests that one kind cannot use go to the other kind.
 * - If only polls wait, a tenth of the limit stays free for the next submission. This reserve shrinks as polls
 *   become overdue and is gone after a sixth of the window, because near full load every request is needed.
 * - A backlog of submissions (more than half of the free requests) is paced. Unpaced, it would take all requests of a window
 *   in a second, and polls would wait. The pace costs nothing, because the polls need the other requests.
 * - Rare polls get a twentieth of the limit, and more only if nothing else waits and half of the limit is free.
 */
export function allocateRequests(demand: BudgetDemand): Allocation {
  const rare = spendOnRarePolls(demand)
  const waiting = { ...demand, free: demand.free - rare.polls, wireRoom: demand.inFlightRoom - rare.polls }
  const { free, pollsDue, submissionsReady, balance } = waiting
  const room = Math.max(0, Math.min(free, waiting.wireRoom))
  const allowed = submissionsAllowed(waiting)
  const submissionsNow = submissionsReady * 2 <= free ? submissionsReady : Math.min(submissionsReady, whole(allowed))
  const paceHolds = submissionsNow < submissionsReady

  const bothWait = submissionsNow > 0 && pollsDue > 0
  const owedToPolls = balance.owedToPolls + (bothWait ? room * POLLS_SHARE : 0)
  const pollsSure = bothWait ? Math.min(room, pollsDue, whole(owedToPolls)) : 0
  const submissions = Math.min(submissionsNow, room - pollsSure)
  const beyondReserve = Math.max(0, free - submissions - (paceHolds ? 0 : reserve(waiting)))
  const polls = Math.min(pollsDue, room - submissions, Math.max(pollsSure, beyondReserve))

  const allowedLeft = Math.max(0, allowed - submissions)
  const roomLeft = room - submissions - polls
  const after = { ...waiting, free: free - submissions - polls }
  return {
    submissions,
    polls,
    rarePolls: rare.polls,
    againInMs: paceHolds && roomLeft > 0 ? Math.max(1, (1 - allowedLeft) / pacePerMs(after)) : undefined,
    balance: {
      owedToPolls: bothWait ? Math.min(1, Math.max(0, owedToPolls - polls)) : balance.owedToPolls,
      submissionsAllowed: allowedLeft,
      rarePollsAllowed: rare.allowedLeft,
      atMs: waiting.nowMs,
    },
  }
}

function spendOnRarePolls(waiting: BudgetDemand): { polls: number; allowedLeft: number } {
  const { balance, nowMs, windowMs, limit, free, inFlightRoom, rarePollsDue } = waiting
  const perWindow = limit * RARE_POLLS_SHARE
  const earned = (Math.max(0, nowMs - balance.atMs) * perWindow) / windowMs
  const allowed = Math.min(Math.max(1, perWindow), balance.rarePollsAllowed + earned)
  const isIdle = waiting.submissionsReady + waiting.pollsDue === 0
  const idle = isIdle ? Math.floor(free - limit * IDLE_SHARE) : 0
  const polls = Math.max(0, Math.min(rarePollsDue, free, inFlightRoom, Math.max(whole(allowed), idle)))
  return { polls, allowedLeft: Math.max(0, allowed - polls) }
}

const RARE_POLLS_SHARE = 0.05
const IDLE_SHARE = 0.5
const POLLS_SHARE = 0.6
/** The submissions' share of the limit. Above a half, because a lower pace would leave requests unused. */
const PACE = 0.7
const PACE_PER_FREE_SHARE = 3
const ALLOWED_MAX_SHARE = 0.05
const RESERVE_SHARE = 0.1
const RESERVE_GONE_WINDOWS = 1 / 6

function pacePerMs({ limit, free, windowMs }: BudgetDemand): number {
  return (limit * PACE + Math.max(0, free) * PACE_PER_FREE_SHARE) / windowMs
}

function submissionsAllowed(waiting: BudgetDemand): number {
  const { balance, nowMs, limit } = waiting
  const earned = Math.max(0, nowMs - balance.atMs) * pacePerMs(waiting)
  return Math.min(allowedMax(limit), balance.submissionsAllowed + earned)
}

function allowedMax(limit: number): number {
  return Math.max(1, limit * ALLOWED_MAX_SHARE)
}

function reserve({ limit, oldestPollOverdueMs, windowMs }: BudgetDemand): number {
  const kept = 1 - oldestPollOverdueMs / (windowMs * RESERVE_GONE_WINDOWS)
  return Math.floor(limit * RESERVE_SHARE * Math.min(1, Math.max(0, kept)))
}

/** Rounds down, but 2.9999999999 counts as 3 (floating-point errors). */
function whole(amount: number): number {
  return Math.floor(amount + 1e-9)
}
