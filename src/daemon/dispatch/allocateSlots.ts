export interface SlotDemand {
  readonly nowMs: number
  readonly windowMs: number
  readonly capacity: number
  readonly slotsFree: number
  readonly wireRoom: number
  readonly submissionsReady: number
  readonly pollsDue: number
  /** Of transactions long past their time; not among `pollsDue`. */
  readonly rarePollsDue: number
  readonly oldestPollOverdueMs: number
  /** From the decision before; at first {@link initialBalance}. */
  readonly balance: SlotBalance
}

/** Handed from decision to decision, so that fairness and pace hold when slots come one at a time. */
export interface SlotBalance {
  /** The part of a slot that polls are owed, in [0, 1]. */
  readonly owedToPolls: number
  readonly submissionsAllowed: number
  readonly rarePollsAllowed: number
  readonly atMs: number
}

export interface SlotAllocation {
  readonly submissions: number
  readonly polls: number
  readonly rarePolls: number
  /** Milliseconds until the next decision, because only the pace holds submissions. */
  readonly againInMs: number | undefined
  readonly balance: SlotBalance
}

export function initialBalance(capacity: number, nowMs: number): SlotBalance {
  return { owedToPolls: 0, submissionsAllowed: allowedMax(capacity), rarePollsAllowed: 1, atMs: nowMs }
}

/**
 * Decides what free slots are spent on.
 *
 * - Both wait: polls get 3 slots of 5, more than the half that they need, so that due polls do not pile up; never
 *   all, so that submissions move after an outage with 10,000 due polls. What one kind cannot use the other gets.
 * - Only polls wait: they leave a tenth of the capacity for the next submission. The reserve melts as polls become
 *   overdue and is gone after a sixth of the window, because near the limit every slot is needed.
 * - A backlog of submissions (more than half of the free slots) is paced, faster while many slots are free. Sent at
 *   once, it would take every slot in one second of each window, and polls between would wait half a window. Pace
 *   costs a backlog nothing, because its polls need the other slots.
 * - Polls of transactions long past their time get a twentieth of the capacity, and more only if nothing else waits
 *   and half of the slots lie idle.
 */
export function allocateSlots(all: SlotDemand): SlotAllocation {
  const rare = spendOnRarePolls(all)
  const waiting = { ...all, slotsFree: all.slotsFree - rare.polls, wireRoom: all.wireRoom - rare.polls }
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
  const { balance, nowMs, windowMs, capacity, slotsFree, wireRoom, rarePollsDue } = waiting
  const perWindow = capacity * RARE_POLLS_SHARE
  const earned = (Math.max(0, nowMs - balance.atMs) * perWindow) / windowMs
  const allowed = Math.min(Math.max(1, perWindow), balance.rarePollsAllowed + earned)
  const isIdle = waiting.submissionsReady + waiting.pollsDue === 0
  const idle = isIdle ? Math.floor(slotsFree - capacity * IDLE_SHARE) : 0
  const polls = Math.max(0, Math.min(rarePollsDue, slotsFree, wireRoom, Math.max(whole(allowed), idle)))
  return { polls, allowedLeft: Math.max(0, allowed - polls) }
}

const RARE_POLLS_SHARE = 0.05
const IDLE_SHARE = 0.5
const POLLS_SHARE = 0.6
/** A window's slots carry half the capacity in submissions: paced below that, slots would go unused. */
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

/** Rounds down, but five times 0.6 is three. */
function whole(amount: number): number {
  return Math.floor(amount + 1e-9)
}
