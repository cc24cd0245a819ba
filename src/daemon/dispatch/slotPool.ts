import type { ReturnableSlot, Slot } from '../../model.ts'
import { permitValidMs, slotHoldMs } from '../../slotReach.ts'

export interface Permit {
  isValid(): boolean
  release(): void
}

type SpentOn = 'submissions' | 'polls' | 'others'

export interface SlotPool {
  available(): number
  /** @param ageMs a stopwatch that was started before the slots were taken */
  add(slots: readonly Slot[], ageMs: () => number): void
  acquire(spentOn: SpentOn): Permit
  hasReturnable(): boolean
  /** Removes the slots that are used up and answered, expired, or unused. */
  takeReturnable(): ReturnableSlot[]
}

interface HeldSlot extends Slot, Record<SpentOn, number> {
  left: number
  unanswered: number
  ageMs: () => number
}

/**
 * Up to a limit of 500 a slot is one request. Above, it is several, and is kept for a moment to be used up.
 *
 * @see docs/why/budget.md
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
  /** Separate, so that slots for records are not spent on tokens. */
  slotPool: SlotPool
  capacity: number
  stopwatch(): () => number
  takeSlots(permits: number): Promise<Slot[]>
  onReturnable(): void
}

export interface TokenSlot<Answered> {
  sawCapacity(capacity: number): void
  isOneAtATime(): boolean
  /** @returns `no-slot` if the budget has none */
  spend(
    request: (mayLeave: () => boolean) => Promise<Answered | null>,
    need: 'missing' | 'renewal',
  ): Promise<Answered | 'no-slot'>
}

/** Below this limit a token is fetched only if a slot is left to use it. */
const smallCapacity = 10
const permitsForToken = (capacity: number) => (capacity < smallCapacity ? Math.min(2, capacity) : 1)

export function createTokenRequestSlot<Answered>(deps: TokenSlotDeps): TokenSlot<Answered> {
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
      deps.onReturnable()
      if (permit === null) return 'no-slot'
      const answered = await request(permit.isValid).finally(() => {
        permit.release()
        deps.onReturnable()
      })
      return answered ?? 'no-slot'
    },
  }
}
