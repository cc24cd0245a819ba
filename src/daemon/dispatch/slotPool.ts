import type { ReturnableSlot, Slot } from '../../model.ts'

/** The right to make one request. */
export interface Permit {
  /** Whether it may still be used: a process that was stopped in between must not send with a lease that ran out. */
  isValid(): boolean
  /** Its request has been answered, or was never made. */
  release(): void
}

export interface SlotPool {
  /** Requests that may be made with what is in hand. */
  available(): number
  /** @param ageMs a stopwatch that was started before the slots were asked for */
  add(slots: readonly Slot[], ageMs: () => number): void
  /** A permit that is not good where the slots in hand have run out since they were counted. */
  acquire(spentOn: 'submission' | 'poll'): Permit
  /** Whether there are slots to give back. */
  hasReturnable(): boolean
  /** Takes the slots to give back out of the pool: used up and all answered, kept too long, or not used at all. */
  takeReturnable(): ReturnableSlot[]
}

/**
 * For how long a slot is kept to be used up, and for how long a permit of it is good, both from its taking. Parts of the
 * window, but no less than a claim may take that has ten round trips to a database 200 ms away.
 */
const holdMs = (windowMs: number) => Math.max(windowMs / 60, 500)
const goodMs = (windowMs: number) => holdMs(windowMs) + Math.max(windowMs / 12, 2_000)

/** How long after a slot was taken the last answer to a request made with it comes, at most. */
export const slotReachMs = (windowMs: number, requestTimeoutMs: number): number =>
  Math.ceil(goodMs(windowMs)) + requestTimeoutMs

/** For how long slots have to be taken: until everything made with them has arrived, and then one window. */
export const slotLeaseMs = (windowMs: number, requestTimeoutMs: number): number =>
  slotReachMs(windowMs, requestTimeoutMs) + windowMs

interface HeldSlot extends Slot {
  left: number
  submissions: number
  unanswered: number
  ageMs: () => number
}

/**
 * The slots that this instance has in hand. With a limit up to 500 a slot is one request and is given back with its
 * answer; above, it is several, and is kept for a moment to be used up.
 *
 * @see docs/budget.md
 */
export function createSlotPool(windowMs: number): SlotPool {
  const held = new Set<HeldSlot>()
  const isOpen = (slot: HeldSlot) => slot.left > 0 && slot.ageMs() < holdMs(windowMs)

  const returnable = () =>
    [...held].filter((slot) => slot.unanswered === 0 && (!isOpen(slot) || slot.left === slot.permits))

  return {
    available: () => [...held].reduce((sum, slot) => sum + (isOpen(slot) ? slot.left : 0), 0),
    add(slots, ageMs) {
      for (const slot of slots) held.add({ ...slot, left: slot.permits, submissions: 0, unanswered: 0, ageMs })
    },
    acquire(spentOn) {
      const slot = held.values().find(isOpen) ?? held.values().find(({ left }) => left > 0)
      if (!slot) return { isValid: () => false, release: () => {} }
      slot.left -= 1
      slot.unanswered += 1
      if (spentOn === 'submission') slot.submissions += 1
      return {
        isValid: () => slot.ageMs() < goodMs(windowMs),
        release: () => {
          slot.unanswered -= 1
        },
      }
    },
    hasReturnable: () => returnable().length > 0,
    takeReturnable() {
      const taken = returnable()
      for (const slot of taken) held.delete(slot)
      return taken.map(({ id, lease, permits, left, submissions }) => ({
        id,
        lease,
        permits,
        submissions,
        used: left < permits,
      }))
    },
  }
}
