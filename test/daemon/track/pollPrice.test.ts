import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type BudgetPressure, computePollPriceMs } from '../../../src/daemon/track/pollPlanner.ts'
import { fitProcessingTimes } from '../../../src/daemon/track/processingTimes.ts'
import { expectedPollCount } from '../../../src/daemon/track/schedule.ts'

const windowMs = 60_000
const calm: BudgetPressure = { capacity: 100, submissionsWaiting: 0, accepted: 0, inflow: 0 }
/** All done after 20 s to 35 s. */
const model = fitProcessingTimes(
  Array.from({ length: 300 }, (_, i) => ({ afterMs: 20_000 + 40 * i, untilMs: 23_000 + 40 * i })),
  windowMs,
)
/** Four of five done in 2 to 5 s, the others in 2 to 5 minutes. */
const humps = fitProcessingTimes(
  Array.from({ length: 300 }, (_, i) =>
    i % 5 === 0
      ? { afterMs: 120_000 + 580 * i, untilMs: 125_000 + 580 * i }
      : { afterMs: 2_000 + 9 * i, untilMs: 2_300 + 9 * i },
  ),
  windowMs,
)
const price = (pressure: Partial<BudgetPressure>, awaited: number[] = [], of = model) =>
  computePollPriceMs({ ...calm, ...pressure }, awaited, of)

test('while submissions wait, a poll costs at least the time of one slot for each of them', () => {
  for (const submissionsWaiting of [1, 50, 1_000, 100_000])
    expect(price({ submissionsWaiting, accepted: 5 })).toBeGreaterThanOrEqual(submissionsWaiting * 600)
})

test('a poll costs at most the time of one slot for each waiting or accepted record', () => {
  expect(price({ submissionsWaiting: 400, accepted: 50 })).toBeLessThanOrEqual(450 * 600)
  expect(price({ accepted: 500 })).toBeLessThanOrEqual(500 * 600)
})

test('a poll costs almost nothing if nothing waits and slots are idle', () => {
  expect(price({ accepted: 3, inflow: 6 })).toBe(240)
})

test('the rest of a batch shares the slots of its own remaining time', () => {
  const one = price({ accepted: 60 }, Array(60).fill(0))
  expect(60 * expectedPollCount(model, 0, one)).toBeLessThanOrEqual(90 * 1.05)
  expect(60 * expectedPollCount(model, 0, one)).toBeGreaterThan(60)
  // Five minutes have 450 slots: three and more for each of a hundred.
  const slow = price({ accepted: 100 }, Array(100).fill(0), humps)
  expect(expectedPollCount(humps, 0, slow)).toBeGreaterThan(3)
})

test('transactions that are known to take long make polls cheaper, because they need no slot soon', () => {
  const fresh = price({ accepted: 200 }, Array(200).fill(0), humps)
  const slow = price({ accepted: 40 }, Array(40).fill(10_000), humps)
  expect(slow).toBeLessThan(fresh)
})

test('more waiting or accepted records never make a poll cheaper', () => {
  const anyCount = fc.integer({ min: 0, max: 5_000 })
  fc.assert(
    fc.property(
      anyCount,
      anyCount,
      anyCount,
      fc.integer({ min: 0, max: 200 }),
      (capacity, waiting, accepted, inflow) => {
        const pressure = { capacity, submissionsWaiting: waiting, accepted, inflow }
        const before = computePollPriceMs(pressure, [], model)
        expect(Number.isFinite(before)).toBe(true)
        for (const more of [{ submissionsWaiting: waiting + 5 }, { accepted: accepted + 5 }])
          expect(computePollPriceMs({ ...pressure, ...more }, [], model)).toBeGreaterThanOrEqual(before * 0.9)
      },
    ),
    { numRuns: 100 },
  )
})

test('near the limit, records that will arrive before the queue is empty count, too', () => {
  expect(price({ submissionsWaiting: 10, inflow: 45 })).toBeGreaterThan(5 * price({ submissionsWaiting: 10 }))
})
