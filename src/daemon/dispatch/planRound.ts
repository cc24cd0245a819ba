import type { Demand } from '../../model.ts'
import { allocateSlots, type Balance, freshBalance } from './allocateSlots.ts'

/** What a round of the dispatcher does. */
export type Plan = { balance: Balance | null } & (
  | { kind: 'wait'; forMs: number }
  /** The pauses may be over: one request shows it, before all others. */
  | { kind: 'trial'; by: 'poll' | 'question' }
  | { kind: 'send'; submissions: number; polls: number; rarePolls: number }
)

/** What this instance knows without the ledger. */
export interface Own {
  nowMs: number
  windowMs: number
  /** Requests that may be on the wire at once, and those that are, or whose outcome is being written. */
  maxInFlight: number
  inFlight: number
  /** Of these the records, and the polls; the ledger counts the polls among those that are due. */
  recordsInHand: number
  pollsInHand: number
  rarePollsInHand: number
  /** Requests that the slots in hand allow. */
  permitsInHand: number
  /** Whether an answer has called for a pause that is still being written. */
  isPausing: boolean
  /** Whether the heartbeat is recent enough: other instances must not take this one for dead. */
  mayClaim: boolean
  /** Claims of which nobody knows yet whether they took place. */
  lostClaims: number
  /** Records in a row that went unanswered. */
  silentRecords: number
  lastTrialWasPoll: boolean
  /** From the plan before; null at first. */
  balance: Balance | null
}

/** Other instances' work and an operator's commands are noticed at the latest after this. */
export const lookAgainMs = 1_000

/** The wait if other instances were quicker, or hold the polls that are due: no signal says when they are through. */
export const tookNothingMs = 50

/** More lost claims than this would only take records out of other instances' hands. */
const lostClaimsMax = 4

/**
 * Returns how long to wait if this instance must not send now, whatever the ledger says; null if it is worth a look.
 * The first part of {@link planRound}.
 */
export function planWithoutLook(own: Own): number | null {
  if (own.isPausing) return tookNothingMs
  if (own.inFlight >= own.maxInFlight || !own.mayClaim || own.lostClaims >= lostClaimsMax) return lookAgainMs
  return null
}

/**
 * Plans one round: wait, try whether the pauses are over, or send. Pure.
 *
 * Five things can say "not now", in this order:
 *
 * 1. a pause that this instance is still writing: neither a token nor a record goes for nothing
 * 2. the heartbeat: what is claimed must be on the wire before other instances take this one for dead
 * 3. lost claims: more than 4 whose COMMIT is not known to have happened
 * 4. pauses in the ledger; a ledger that went back in time is one, too. When their time is over only a trial goes
 * 5. the proof after a trial: one record goes alone; and while records go unanswered no new ones take their places
 *
 * A trial is a due poll or a question about nothing in turn, and never a record, which it might cost. In turn, because a
 * transaction whose poll alone goes wrong must not hold everybody.
 */
export function planRound(own: Own, demand: Demand): Plan {
  const { pauses, permitsFree, nextSlotMs } = demand
  const wait = (forMs: number, balance = own.balance): Plan => ({ kind: 'wait', forMs, balance })
  const withoutLookMs = planWithoutLook(own)
  if (withoutLookMs !== null) return wait(withoutLookMs)
  if (pauses.some(({ leftMs }) => leftMs === null || leftMs > 0)) return wait(untilPauseEnds(pauses))
  const slotsFree = permitsFree + own.permitsInHand
  const pollsDue = Math.max(0, demand.pollsDue - (own.pollsInHand - own.rarePollsInHand))
  if (pauses.length > 0) {
    if (slotsFree === 0) return wait(nextSlotMs ?? lookAgainMs)
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
    rarePollsDue: Math.max(0, demand.rarePollsDue - own.rarePollsInHand),
    oldestPollOverdueMs: demand.pollOverdueMs,
    balance: own.balance ?? freshBalance(demand.capacity, own.nowMs),
  })
  if (submissions + polls + rarePolls === 0) return wait(untilMore(demand, againInMs), balance)
  return { kind: 'send', submissions, polls, rarePolls, balance }
}

/** Returns how many records may go now. */
function recordsMax(own: Own, { proof }: Demand): number {
  if (proof !== 'none') return proof === 'wanted' ? 1 : 0
  return Math.max(0, own.maxInFlight - own.recordsInHand - own.silentRecords)
}

/** Until there is a slot for what waits, or something to send; `againInMs`: until the division of slots may change. */
function untilMore(
  { submissionsReady, pollsDue, nextDueMs, nextSlotMs }: Demand,
  againInMs: number | undefined,
): number {
  const more = submissionsReady + pollsDue > 0 ? nextSlotMs : nextDueMs
  return Math.max(1, Math.min(lookAgainMs, more ?? lookAgainMs, againInMs ?? lookAgainMs))
}

function untilPauseEnds(pauses: Demand['pauses']): number {
  const longest = Math.max(...pauses.map(({ leftMs }) => leftMs ?? lookAgainMs))
  return Math.max(1, Math.min(lookAgainMs, longest))
}
