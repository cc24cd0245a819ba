import type { RequestDemand } from '../../model/dispatch.ts'
import { type AllocationBalance, allocateRequests, initialAllocationBalance } from './allocateRequests.ts'

export type RoundPlan = { balance: AllocationBalance | null } & (
  | { kind: 'wait'; forMs: number }
  | { kind: 'trial'; by: 'poll' | 'question' }
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
  silentRecords: number
  lastTrialWasPoll: boolean
  balance: AllocationBalance | null
}

/** The longest wait until this instance notices what other instances and operators did. */
export const roundWaitMaxMs = 1_000

/** The wait if nothing is planned. An instance that captures a record wakes its own dispatcher. */
export const idleWaitMs = 2_000

/**
 * The wait if other instances took the requests or the due polls, because no signal says when these instances are done.
 */
export const retrySoonMs = 50

export function blockedWaitMs(instance: InstanceState): number | null {
  if (instance.isPausing) return retrySoonMs
  if (instance.inFlight >= instance.maxInFlight || !instance.mayClaim) return roundWaitMaxMs
  return null
}

/**
 * Plans one round: wait, send a trial, or send.
 *
 * Sending is delayed in these cases, checked in this order:
 *
 * - This instance is still writing a pause.
 * - Its heartbeat is late, so other instances may soon take it for dead.
 * - The ledger has pauses. When their time is over, only a trial is sent.
 * - A trial succeeded. Then one record is sent alone, and new records follow only after its answer.
 *
 * Trials alternate between a due poll and a GET for an unknown id, because one bad poll must not hold up all sending. A
 * trial never sends a record, because the record could be lost.
 */
export function planRound(instance: InstanceState, demand: RequestDemand): RoundPlan {
  const { pauses, free, nextFreeMs } = demand
  const wait = (forMs: number, balance = instance.balance): RoundPlan => ({ kind: 'wait', forMs, balance })
  const withoutLookMs = blockedWaitMs(instance)
  if (withoutLookMs !== null) return wait(withoutLookMs)
  if (pauses.some(({ leftMs }) => leftMs === null || leftMs > 0)) return wait(untilPauseEnds(pauses))
  if (pauses.length > 0) {
    if (free === 0) return wait(untilFreeMs(nextFreeMs))
    return {
      kind: 'trial',
      by: !instance.lastTrialWasPoll && demand.pollsDue > 0 ? 'poll' : 'question',
      balance: instance.balance,
    }
  }
  const { submissions, polls, rarePolls, againInMs, balance } = allocateRequests({
    nowMs: instance.nowMs,
    windowMs: instance.windowMs,
    limit: demand.limit,
    free,
    inFlightRoom: instance.maxInFlight - instance.inFlight,
    submissionsReady: Math.min(demand.submissionsReady, recordsMax(instance, demand)),
    pollsDue: demand.pollsDue,
    rarePollsDue: demand.rarePollsDue,
    oldestPollOverdueMs: demand.pollOverdueMs,
    balance: instance.balance ?? initialAllocationBalance(demand.limit, instance.nowMs),
  })
  if (submissions + polls + rarePolls === 0) return wait(untilMore(demand, againInMs), balance)
  return { kind: 'send', submissions, polls, rarePolls, balance }
}

function recordsMax(instance: InstanceState, { proof }: RequestDemand): number {
  if (proof !== 'none') return proof === 'wanted' ? 1 : 0
  // Unanswered records keep their places until the pause is written, so that new records do not follow them.
  return Math.max(0, instance.maxInFlight - instance.recordsInFlight - instance.silentRecords)
}

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

function untilPauseEnds(pauses: RequestDemand['pauses']): number {
  const longest = Math.max(...pauses.map(({ leftMs }) => leftMs ?? roundWaitMaxMs))
  return Math.max(1, Math.min(roundWaitMaxMs, longest))
}
