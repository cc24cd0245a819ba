import type { RequestDemand } from '../../model.ts'
import { allocateSlots, initialSlotBalance, type SlotBalance } from './allocateSlots.ts'

export type RoundPlan = { balance: SlotBalance | null } & (
  | { kind: 'wait'; forMs: number }
  | { kind: 'trial'; by: 'poll' | 'question' }
  | { kind: 'send'; submissions: number; polls: number; rarePolls: number }
)

export interface InstanceState {
  nowMs: number
  windowMs: number
  maxInFlight: number
  inFlight: number
  /** The ledger counts these polls as due, too. */
  recordsInFlight: number
  pollsInFlight: number
  rarePollsInFlight: number
  permitsHeld: number
  isPausing: boolean
  mayClaim: boolean
  lostClaims: number
  silentRecords: number
  lastTrialWasPoll: boolean
  balance: SlotBalance | null
}

/** Bounds how late this instance notices the work of other instances and operators. */
export const waitMaxMs = 1_000

/** The wait if other instances were quicker or hold the due polls, because no signal tells when they are done. */
export const retrySoonMs = 50

/** More lost claims would only withhold records from other instances. */
const lostClaimsMax = 4

export function blockedWaitMs(own: InstanceState): number | null {
  if (own.isPausing) return retrySoonMs
  if (own.inFlight >= own.maxInFlight || !own.mayClaim || own.lostClaims >= lostClaimsMax) return waitMaxMs
  return null
}

/**
 * Plans one round: wait, send a trial, or send.
 *
 * Five things can delay it, in this order:
 *
 * 1. a pause that this instance is still writing 2. the heartbeat: claimed records must leave before other instances
 * take this one for dead 3. lost claims: 4 or more whose COMMIT may still take effect 4. pauses in the ledger: when
 * their time is over, only a trial is sent 5. the proof after a trial: one record is sent alone, and unanswered records
 * are not followed by new ones
 *
 * Trials alternate between a due poll and a question about an unknown id, because one bad poll must not hold up
 * everything. A trial is never a record, because the record could be lost.
 */
export function planRound(own: InstanceState, demand: RequestDemand): RoundPlan {
  const { pauses, permitsFree, nextSlotMs } = demand
  const wait = (forMs: number, balance = own.balance): RoundPlan => ({ kind: 'wait', forMs, balance })
  const withoutLookMs = blockedWaitMs(own)
  if (withoutLookMs !== null) return wait(withoutLookMs)
  if (pauses.some(({ leftMs }) => leftMs === null || leftMs > 0)) return wait(untilPauseEnds(pauses))
  const slotsFree = permitsFree + own.permitsHeld
  const pollsDue = Math.max(0, demand.pollsDue - (own.pollsInFlight - own.rarePollsInFlight))
  if (pauses.length > 0) {
    if (slotsFree === 0) return wait(nextSlotMs ?? waitMaxMs)
    return { kind: 'trial', by: !own.lastTrialWasPoll && pollsDue > 0 ? 'poll' : 'question', balance: own.balance }
  }
  const { submissions, polls, rarePolls, againInMs, balance } = allocateSlots({
    nowMs: own.nowMs,
    windowMs: own.windowMs,
    capacity: demand.capacity,
    slotsFree,
    wireRoom: own.maxInFlight - own.inFlight,
    submissionsReady: Math.min(demand.submissionsReady, recordsMax(own, demand)),
    pollsDue,
    rarePollsDue: Math.max(0, demand.rarePollsDue - own.rarePollsInFlight),
    oldestPollOverdueMs: demand.pollOverdueMs,
    balance: own.balance ?? initialSlotBalance(demand.capacity, own.nowMs),
  })
  if (submissions + polls + rarePolls === 0) return wait(untilMore(demand, againInMs), balance)
  return { kind: 'send', submissions, polls, rarePolls, balance }
}

function recordsMax(own: InstanceState, { proof }: RequestDemand): number {
  if (proof !== 'none') return proof === 'wanted' ? 1 : 0
  // Until the pause is written, unanswered records keep their places, so that no new records follow them.
  return Math.max(0, own.maxInFlight - own.recordsInFlight - own.silentRecords)
}

function untilMore(
  { submissionsReady, pollsDue, nextDueMs, nextSlotMs }: RequestDemand,
  againInMs: number | undefined,
): number {
  const more = submissionsReady + pollsDue > 0 ? nextSlotMs : nextDueMs
  return Math.max(1, Math.min(waitMaxMs, more ?? waitMaxMs, againInMs ?? waitMaxMs))
}

function untilPauseEnds(pauses: RequestDemand['pauses']): number {
  const longest = Math.max(...pauses.map(({ leftMs }) => leftMs ?? waitMaxMs))
  return Math.max(1, Math.min(waitMaxMs, longest))
}
