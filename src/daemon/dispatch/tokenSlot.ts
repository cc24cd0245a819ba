import type { Slot } from '../../model.ts'
import type { SlotPool } from './slotPool.ts'

export interface TokenSlotDeps<Answered> {
  /** A pool of its own: what is in hand for records is not spent on tokens. */
  slotPool: SlotPool
  /** What the limit allows, until it is seen to be another. */
  capacity: number
  /** @returns what tells the milliseconds since */
  stopwatch(): () => number
  takeSlots(permits: number): Promise<Slot[]>
  /** There may be slots to give back. */
  onReturnable(): void
  /** The request was answered, under a limit of so many. */
  onAnswered(answered: Answered, capacity: number): void
}

/** The slot that a request for an access token is made with. */
export interface TokenSlot<Answered> {
  /** The limit in force, which another instance may have made smaller. */
  sawCapacity(capacity: number): void
  /** Whether a token and a request never find slots within one window. */
  isOneAtATime(): boolean
  /** Makes the request if the budget has a slot for it. @returns `no-slot` where it has none, or none any more */
  spend(
    request: (mayLeave: () => boolean) => Promise<Answered | null>,
    need: 'missing' | 'renewal',
  ): Promise<Answered | 'no-slot'>
}

/** Below this limit a token is fetched only where the budget has a request left to use it for. */
const smallCapacity = 10
const permitsForToken = (capacity: number) => (capacity < smallCapacity ? Math.min(2, capacity) : 1)

export function createTokenSlot<Answered>(deps: TokenSlotDeps<Answered>): TokenSlot<Answered> {
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
      if (answered !== null) deps.onAnswered(answered, capacity)
      return answered ?? 'no-slot'
    },
  }
}
