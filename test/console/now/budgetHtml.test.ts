import { expect, test } from 'vitest'
import { summarizeBudget } from '../../../src/console/now/budgetHtml.ts'
import type { BusySlot } from '../../../src/ledger/snapshot.ts'

const nowMs = 1_000_000
const slot = (given: Partial<BusySlot>): BusySlot => ({
  ...{ permits: 1, setMs: nowMs - 5_000, freeMs: nowMs + 55_000, isTaken: false, submissions: 0, polls: 0, others: 0 },
  ...given,
})
const countsOf = (...busy: BusySlot[]) => summarizeBudget({ nowMs, windowMs: 60_000, capacity: 100, busy })

test('each request counts for its purpose, and the remaining slots are free', () => {
  const { counts, free, nextFreeMs } = countsOf(
    slot({ submissions: 1 }),
    slot({ polls: 1, freeMs: nowMs + 7_000 }),
    slot({ others: 1 }),
    slot({ isTaken: true, submissions: 1 }),
    slot({}),
  )
  expect(counts).toEqual({ submissions: 1, polls: 1, others: 1, inHand: 1, heldBack: 1 })
  expect({ free, nextFreeMs }).toEqual({ free: 95, nextFreeMs: 7_000 })
})

test('the unused permits of a slot for several requests count as held back', () => {
  const { counts, free } = countsOf(slot({ permits: 12, submissions: 5, polls: 4 }))
  expect(counts).toMatchObject({ submissions: 5, polls: 4, heldBack: 3 })
  expect(free).toBe(88)
})
