import type { Slot, SpentSlot } from '../record.ts'

/** The right to make one request. */
export interface Permit {
  /** Whether it may still be used: a process that was stopped in between must not send with a lease that ran out. */
  isGood(): boolean
  /** Its request has been answered, or was never made. */
  done(): void
}

export interface Purse {
  /** Requests that may be made with what is in hand. */
  available(): number
  /** @param ageMs a stopwatch that was started before the slots were asked for */
  add(slots: readonly Slot[], ageMs: () => number): void
  /** A permit that is not good where the slots in hand have run out since they were counted. */
  draw(spentOn: 'submission' | 'poll'): Permit
  /** Whether there are slots to give back. */
  hasSpent(): boolean
  /** Takes the slots to give back out of the purse: used up and all answered, kept too long, or not used at all. */
  takeSpent(): SpentSlot[]
}

/** How long a slot may be used after it was taken, and how long a permit is good after that, as parts of the window. */
const holdShare = 1 / 60
const graceShare = 1 / 12

/**
 * For how long slots have to be taken so that even the last answer to a request made with them comes before they are
 * free, plus one window.
 */
export const slotLeaseMs = (windowMs: number, requestTimeoutMs: number): number =>
  Math.ceil(windowMs * (1 + holdShare + graceShare)) + requestTimeoutMs

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
export function createPurse(windowMs: number): Purse {
  const held = new Set<HeldSlot>()
  const isOpen = (slot: HeldSlot) => slot.left > 0 && slot.ageMs() < windowMs * holdShare

  const spent = () => [...held].filter((slot) => slot.unanswered === 0 && (!isOpen(slot) || slot.left === slot.permits))

  return {
    available: () => [...held].reduce((sum, slot) => sum + (isOpen(slot) ? slot.left : 0), 0),
    add(slots, ageMs) {
      for (const slot of slots) held.add({ ...slot, left: slot.permits, submissions: 0, unanswered: 0, ageMs })
    },
    draw(spentOn) {
      const slot = held.values().find(isOpen) ?? held.values().find(({ left }) => left > 0)
      if (!slot) return { isGood: () => false, done: () => {} }
      slot.left -= 1
      slot.unanswered += 1
      if (spentOn === 'submission') slot.submissions += 1
      return {
        isGood: () => slot.ageMs() < windowMs * (holdShare + graceShare),
        done: () => {
          slot.unanswered -= 1
        },
      }
    },
    hasSpent: () => spent().length > 0,
    takeSpent() {
      const taken = spent()
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
