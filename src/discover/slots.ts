/** Gives the right to make one request, by the ledger's budget or by a count in memory. */
export interface Slots {
  take(): Promise<SlotTaken>
  takeNow(): Promise<SlotTaken | null>
}

export type SlotTaken =
  | {
      kind: 'slot'
      /** False once it is too late for a request to leave. */
      mayLeave(): boolean
      /** Call after the answer. */
      done(): Promise<void>
    }
  /** All sending is paused, or no slot became free. */
  | { kind: 'none'; why: string }

interface OwnSlotsDeps {
  requests: number
  windowMs: number
  nowMs(): number
  waitMs(ms: number): Promise<void>
}

/** Counts in memory, by the rule of docs/why/budget.md: a slot is free again a window after the answer. */
export function createInMemorySlots({ requests, windowMs, nowMs, waitMs }: OwnSlotsDeps): Slots {
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
