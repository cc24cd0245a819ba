import type { ReturnableSlot, Slot } from '../../model.ts'
import { permitValidMs, slotUsableMs } from '../../slotDurations.ts'

export interface Permit {
  isValid(): boolean
  endRequest(): void
}

type SpentOn = 'submissions' | 'polls' | 'others'

export type SlotPool = ReturnType<typeof createSlotPool>

interface HeldSlot extends Slot, Record<SpentOn, number> {
  left: number
  unanswered: number
  ageMs: () => number
}

/**
 * Holds this instance's slots. Up to a limit of 500, a slot is one request. Above, a slot is several requests, and is
 * kept for a moment to use all of them.
 *
 * @see docs/why/budget.md
 */
export function createSlotPool(windowMs: number) {
  const held = new Set<HeldSlot>()
  const isOpen = (slot: HeldSlot) => slot.left > 0 && slot.ageMs() < slotUsableMs(windowMs)

  const returnable = () =>
    [...held].filter((slot) => slot.unanswered === 0 && (!isOpen(slot) || slot.left === slot.permits))

  return {
    available: (): number => [...held].reduce((sum, slot) => sum + (isOpen(slot) ? slot.left : 0), 0),
    /** @param ageMs a stopwatch that was started before the slots were taken */
    add(slots: readonly Slot[], ageMs: () => number): void {
      for (const slot of slots)
        held.add({ ...slot, left: slot.permits, submissions: 0, polls: 0, others: 0, unanswered: 0, ageMs })
    },
    acquire(spentOn: SpentOn): Permit {
      const slot = held.values().find(isOpen) ?? held.values().find(({ left }) => left > 0)
      if (!slot) return { isValid: () => false, endRequest: () => {} }
      slot.left -= 1
      slot.unanswered += 1
      slot[spentOn] += 1
      return {
        isValid: () => slot.ageMs() < permitValidMs(windowMs),
        endRequest: () => {
          slot.unanswered -= 1
        },
      }
    },
    hasReturnable: (): boolean => returnable().length > 0,
    /** Removes the answered slots that are used up or expired, and the unused ones. */
    takeReturnable(): ReturnableSlot[] {
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

export interface TokenRequestBudgetDeps {
  /** Not the pool for records, so that their slots are not spent on tokens. */
  slotPool: SlotPool
  capacity: number
  stopwatch(): () => number
  takeSlots(permits: number): Promise<Slot[]>
  onReturnable(): void
}

export type TokenRequestBudget<Answered> = ReturnType<typeof createTokenRequestBudget<Answered>>

/** Below this limit, a token is fetched only if a second slot is free to use the token. */
const smallCapacity = 10
const permitsForToken = (capacity: number) => (capacity < smallCapacity ? Math.min(2, capacity) : 1)

export function createTokenRequestBudget<Answered>(deps: TokenRequestBudgetDeps) {
  const { slotPool } = deps
  let { capacity } = deps
  return {
    updateCapacity(inForce: number): void {
      capacity = inForce
    },
    isOneAtATime: (): boolean => capacity === 1,
    /** @returns `no-slot` if the request did not leave */
    async spend(
      request: (mayLeave: () => boolean) => Promise<Answered | null>,
      need: 'missing' | 'renewal',
    ): Promise<Answered | 'no-slot'> {
      const permits = permitsForToken(capacity)
      if (need === 'renewal' && capacity === 1) return 'no-slot'
      const ageMs = deps.stopwatch()
      slotPool.add(await deps.takeSlots(permits), ageMs)
      const permit = slotPool.available() >= permits ? slotPool.acquire('others') : null
      deps.onReturnable()
      if (permit === null) return 'no-slot'
      const answered = await request(permit.isValid).finally(() => {
        permit.endRequest()
        deps.onReturnable()
      })
      return answered ?? 'no-slot'
    },
  }
}
