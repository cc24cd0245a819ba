export interface SlotDemand {
  readonly nowMs: number
  readonly windowMs: number
  readonly capacity: number
  readonly slotsFree: number
  readonly inFlightRoom: number
  readonly submissionsReady: number
  readonly pollsDue: number
  /** Due polls of stuck transactions, which `pollsDue` does not count. */
  readonly rarePollsDue: number
  readonly oldestPollOverdueMs: number
  readonly balance: SlotBalance
}

/** What one allocation leaves to the next, so that the shares hold even if slots become free one at a time. */
export interface SlotBalance {
  /** The part of a slot that polls may still claim, in [0, 1]. */
  readonly owedToPolls: number
  readonly submissionsAllowed: number
  readonly rarePollsAllowed: number
  readonly atMs: number
}

export interface SlotAllocation {
  readonly submissions: number
  readonly polls: number
  readonly rarePolls: number
  /** Time until the next allocation; undefined unless only the pace holds submissions back. */
  readonly againInMs: number | undefined
  readonly balance: SlotBalance
}

export function initialSlotBalance(capacity: number, nowMs: number): SlotBalance {
  return { owedToPolls: 0, submissionsAllowed: allowedMax(capacity), rarePollsAllowed: 1, atMs: nowMs }
}

/**
 * Decides how free slots are spent.
 *
 * - If polls and submissions wait, polls get 3 of 5 slots, so that due polls do not pile up. Never all slots, so that
 *   submissions move after an outage. Slots that one kind cannot use go to the other kind.
 * - If only polls wait, a tenth of the capacity stays free for the next submission. This reserve shrinks as polls
 *   become overdue and is gone after a sixth of the window, because near the limit every slot is needed.
 * - A backlog of submissions (more than half of the free slots) is paced. Unpaced, it would take all slots of a window
 *   in a second, and polls would wait. The pace costs nothing, because the polls need the other slots.
 * - Rare polls get a twentieth of the capacity, and more only if nothing else waits and half of the slots are idle.
 */
export function allocateSlots(demand: SlotDemand): SlotAllocation {
  const rare = spendOnRarePolls(demand)
  const waiting = { ...demand, slotsFree: demand.slotsFree - rare.polls, wireRoom: demand.inFlightRoom - rare.polls }
  const { slotsFree, pollsDue, submissionsReady, balance } = waiting
  const slots = Math.max(0, Math.min(slotsFree, waiting.wireRoom))
  const allowed = submissionsAllowed(waiting)
  const submissionsNow =
    submissionsReady * 2 <= slotsFree ? submissionsReady : Math.min(submissionsReady, whole(allowed))
  const paceHolds = submissionsNow < submissionsReady

  const bothWait = slots > 0 && submissionsNow > 0 && pollsDue > 0
  const owedToPolls = balance.owedToPolls + (bothWait ? slots * POLLS_SHARE : 0)
  const pollsSure = bothWait ? Math.min(slots, pollsDue, whole(owedToPolls)) : 0
  const submissions = Math.min(submissionsNow, slots - pollsSure)
  const beyondReserve = Math.max(0, slotsFree - submissions - (paceHolds ? 0 : reserve(waiting)))
  const polls = Math.min(pollsDue, slots - submissions, Math.max(pollsSure, beyondReserve))

  const allowedLeft = Math.max(0, allowed - submissions)
  const slotsLeft = slots - submissions - polls
  const after = { ...waiting, slotsFree: slotsFree - submissions - polls }
  return {
    submissions,
    polls,
    rarePolls: rare.polls,
    againInMs: paceHolds && slotsLeft > 0 ? Math.max(1, (1 - allowedLeft) / pacePerMs(after)) : undefined,
    balance: {
      owedToPolls: bothWait ? Math.min(1, Math.max(0, owedToPolls - polls)) : balance.owedToPolls,
      submissionsAllowed: allowedLeft,
      rarePollsAllowed: rare.allowedLeft,
      atMs: waiting.nowMs,
    },
  }
}

function spendOnRarePolls(waiting: SlotDemand): { polls: number; allowedLeft: number } {
  const { balance, nowMs, windowMs, capacity, slotsFree, inFlightRoom, rarePollsDue } = waiting
  const perWindow = capacity * RARE_POLLS_SHARE
  const earned = (Math.max(0, nowMs - balance.atMs) * perWindow) / windowMs
  const allowed = Math.min(Math.max(1, perWindow), balance.rarePollsAllowed + earned)
  const isIdle = waiting.submissionsReady + waiting.pollsDue === 0
  const idle = isIdle ? Math.floor(slotsFree - capacity * IDLE_SHARE) : 0
  const polls = Math.max(0, Math.min(rarePollsDue, slotsFree, inFlightRoom, Math.max(whole(allowed), idle)))
  return { polls, allowedLeft: Math.max(0, allowed - polls) }
}

const RARE_POLLS_SHARE = 0.05
const IDLE_SHARE = 0.5
const POLLS_SHARE = 0.6
/** The submissions' share of the capacity. Above a half, because a lower pace would leave slots unused. */
const PACE = 0.7
const PACE_PER_FREE_SHARE = 3
const ALLOWED_MAX_SHARE = 0.05
const RESERVE_SHARE = 0.1
const RESERVE_GONE_WINDOWS = 1 / 6

function pacePerMs({ capacity, slotsFree, windowMs }: SlotDemand): number {
  return (capacity * PACE + Math.max(0, slotsFree) * PACE_PER_FREE_SHARE) / windowMs
}

function submissionsAllowed(waiting: SlotDemand): number {
  const { balance, nowMs, capacity } = waiting
  const earned = Math.max(0, nowMs - balance.atMs) * pacePerMs(waiting)
  return Math.min(allowedMax(capacity), balance.submissionsAllowed + earned)
}

function allowedMax(capacity: number): number {
  return Math.max(1, capacity * ALLOWED_MAX_SHARE)
}

function reserve({ capacity, oldestPollOverdueMs, windowMs }: SlotDemand): number {
  const kept = 1 - oldestPollOverdueMs / (windowMs * RESERVE_GONE_WINDOWS)
  return Math.floor(capacity * RESERVE_SHARE * Math.min(1, Math.max(0, kept)))
}

/** Rounds down, but 2.9999999999 counts as 3 (floating-point errors). */
function whole(amount: number): number {
  return Math.floor(amount + 1e-9)
}
