import type { ReturnableSlot, Slot } from '../../model.ts'
import { permitValidMs, slotHoldMs } from '../../slotReach.ts'

/** The right to make one request. */
export interface Permit {
  /** Whether it may still be used: a process that was stopped in between must not send with a lease that ran out. */
  isValid(): boolean
  /** Its request has been answered, or was never made. */
  release(): void
}

/** What a request is made for. */
type SpentOn = 'submissions' | 'polls' | 'others'

export interface SlotPool {
  /** Requests that may be made with what is in hand. */
  available(): number
  /** @param ageMs a stopwatch that was started before the slots were asked for */
  add(slots: readonly Slot[], ageMs: () => number): void
  /** Returns a permit that is not valid if the slots in hand have run out since they were counted. */
  acquire(spentOn: SpentOn): Permit
  /** Whether there are slots to give back. */
  hasReturnable(): boolean
  /** Takes the slots to give back out of the pool: used up and all answered, kept too long, or not used at all. */
  takeReturnable(): ReturnableSlot[]
}

interface HeldSlot extends Slot, Record<SpentOn, number> {
  left: number
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
  const isOpen = (slot: HeldSlot) => slot.left > 0 && slot.ageMs() < slotHoldMs(windowMs)

  const returnable = () =>
    [...held].filter((slot) => slot.unanswered === 0 && (!isOpen(slot) || slot.left === slot.permits))

  return {
    available: () => [...held].reduce((sum, slot) => sum + (isOpen(slot) ? slot.left : 0), 0),
    add(slots, ageMs) {
      for (const slot of slots)
        held.add({ ...slot, left: slot.permits, submissions: 0, polls: 0, others: 0, unanswered: 0, ageMs })
    },
    acquire(spentOn) {
      const slot = held.values().find(isOpen) ?? held.values().find(({ left }) => left > 0)
      if (!slot) return { isValid: () => false, release: () => {} }
      slot.left -= 1
      slot.unanswered += 1
      slot[spentOn] += 1
      return {
        isValid: () => slot.ageMs() < permitValidMs(windowMs),
        release: () => {
          slot.unanswered -= 1
        },
      }
    },
    hasReturnable: () => returnable().length > 0,
    takeReturnable() {
      const taken = returnable()
      for (const slot of taken) held.delete(slot)
      return taken.map(({ id, lease, permits, left, submissions, polls, others }) => ({
        id,
        lease,
        permits,
        submissions,
        polls,
        others,
        used: left < permits,
      }))
    },
  }
}

export interface TokenSlotDeps {
  /** A pool of its own: what is in hand for records is not spent on tokens. */
  slotPool: SlotPool
  /** What the limit allows, until it is seen to be another. */
  capacity: number
  /** @returns what tells the milliseconds since */
  stopwatch(): () => number
  takeSlots(permits: number): Promise<Slot[]>
  /** There may be slots to give back. */
  onReturnable(): void
}

/** The slot that a request for an access token is made with. */
export interface TokenSlot<Answered> {
  /** The limit in force, which another instance may have made smaller. */
  sawCapacity(capacity: number): void
  /** Whether a token and a request never find slots within one window. */
  isOneAtATime(): boolean
  /** Makes the request if the budget has a slot for it. @returns `no-slot` if it has none, or none any more */
  spend(
    request: (mayLeave: () => boolean) => Promise<Answered | null>,
    need: 'missing' | 'renewal',
  ): Promise<Answered | 'no-slot'>
}

/** Below this limit a token is fetched only if the budget has a request left to use it for. */
const smallCapacity = 10
const permitsForToken = (capacity: number) => (capacity < smallCapacity ? Math.min(2, capacity) : 1)

export function createTokenSlot<Answered>(deps: TokenSlotDeps): TokenSlot<Answered> {
  const { slotPool } = deps
  let { capacity } = deps
  return {
    sawCapacity(inForce) {
      capacity = inForce
    },
    isOneAtATime: () => capacity === 1,
    async spend(request, need) {
      const permits = permitsForToken(capacity)
      if (need === 'renewal' && capacity === 1) return 'no-slot'
      const ageMs = deps.stopwatch()
      slotPool.add(await deps.takeSlots(permits), ageMs)
      const permit = slotPool.available() >= permits ? slotPool.acquire('others') : null
      deps.onReturnable() // gives back what it does not use, at once
      if (permit === null) return 'no-slot'
      const answered = await request(permit.isValid).finally(() => {
        permit.release()
        deps.onReturnable()
      })
      return answered ?? 'no-slot'
    },
  }
}
