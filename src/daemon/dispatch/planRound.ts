import type { RequestDemand } from '../../model/dispatch.ts'
import { isPauseOfBreaker } from '../../model/service.ts'
import { type AllocationBalance, allocateRequests, initialAllocationBalance } from './allocateRequests.ts'

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
export const idleWaitMs = 2_000

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
