/** The right to make one request, and who gives it: the ledger's budget, or a count of our own. */
export interface Slots {
  /** Waits for one as long as it is worth while. */
  take(): Promise<SlotTaken>
  /** One that is free now; null where none is. */
  takeNow(): Promise<SlotTaken | null>
}

export type SlotTaken =
  | {
      kind: 'slot' /** Whether a request may still leave with it. */
      mayLeave(): boolean /** Its answer has come. */
      done(): Promise<void>
    }
  /** Nobody may send, or nothing is free: in words. */
  | { kind: 'none'; why: string }

interface OwnSlotsDeps {
  requests: number
  windowMs: number
  nowMs(): number
  waitMs(ms: number): Promise<void>
}

/** A count in memory, by the rule of docs/why/budget.md: a slot is free again a window after the answer. */
export function createOwnSlots({ requests, windowMs, nowMs, waitMs }: OwnSlotsDeps): Slots {
  const freeAtMs: number[] = Array(requests).fill(Number.NEGATIVE_INFINITY)
  const next = () => freeAtMs.indexOf(Math.min(...freeAtMs))
  function hand(slot: number): SlotTaken {
    freeAtMs[slot] = Number.POSITIVE_INFINITY
    return {
      kind: 'slot',
      mayLeave: () => true,
      async done() {
        freeAtMs[slot] = nowMs() + windowMs
      },
    }
  }
  return {
    async take() {
      await waitMs(Math.max(0, (freeAtMs[next()] ?? 0) - nowMs()))
      return hand(next())
    },
    async takeNow() {
      return (freeAtMs[next()] ?? 0) > nowMs() ? null : hand(next())
    },
  }
}
