import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  ageMsAtFractionalBin,
  fitProcessingTimes,
  fractionalBinOfAge,
  meanProcessingTimeMs,
  type ObservedProcessingTime,
  type ProcessingTimes,
  processingTimeQuantileMs,
} from '../../../src/daemon/track/processingTimes.ts'
import { randomFrom } from '../../../tools/bench/harness/workloads.ts'

const WINDOW_MS = 60_000

const anyObservation: fc.Arbitrary<ObservedProcessingTime> = fc.record({
  afterMs: fc.double({ min: -1_000, max: 1e9, noNaN: false }),
  untilMs: fc.oneof(fc.double({ min: 0, max: 1e9, noNaN: false }), fc.constant(Number.POSITIVE_INFINITY)),
})

/** The probability of being done by an age. */
function doneBy(model: ProcessingTimes, ageMs: number): number {
  const position = fractionalBinOfAge(ageMs, WINDOW_MS)
  return model.mass.reduce((sum, share, bin) => sum + share * Math.min(1, Math.max(0, position - bin)), 0)
}

/** What a poll every `intervalMs` sees of times of `medianMs` ± 10 %. */
function polledEvery(intervalMs: number, medianMs: number, count: number, seed: number): ObservedProcessingTime[] {
  const random = randomFrom(seed)
  return Array.from({ length: count }, () => {
    const doneMs = medianMs * (0.9 + 0.2 * random())
    const polls = Math.ceil(doneMs / intervalMs)
    return { afterMs: (polls - 1) * intervalMs, untilMs: polls * intervalMs }
  })
}

test('whatever is observed, the model’s shares lie between 0 and 1 and sum to 1', () => {
  fc.assert(
    fc.property(
      fc.array(anyObservation, { maxLength: 120 }),
      fc.integer({ min: 100, max: 600_000 }),
      (seen, windowMs) => {
        const model = fitProcessingTimes(seen, windowMs)
        expect(model.mass.every((share) => share >= 0 && share <= 1)).toBe(true)
        expect(model.mass.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 9)
        expect(meanProcessingTimeMs(model)).toBeGreaterThan(0)
      },
    ),
    { numRuns: 60 },
  )
})

test('the share of finished transactions rises with age from 0 to 1, and the quantile is its inverse', () => {
  const model = fitProcessingTimes(polledEvery(2_000, 30_000, 50, 1), WINDOW_MS)
  expect(doneBy(model, 0)).toBe(0)
  expect(doneBy(model, Number.POSITIVE_INFINITY)).toBeCloseTo(1, 9)
  fc.assert(
    fc.property(fc.double({ min: 0.01, max: 0.99, noNaN: true }), (share) => {
      expect(doneBy(model, processingTimeQuantileMs(model, share))).toBeCloseTo(share, 6)
    }),
  )
})

test('an age converted to a bin and back stays the same', () => {
  const model = fitProcessingTimes([], WINDOW_MS)
  fc.assert(
    fc.property(fc.double({ min: 0, max: 6 * 3_600_000, noNaN: true }), (ageMs) => {
      expect(ageMsAtFractionalBin(model, fractionalBinOfAge(ageMs, WINDOW_MS)) / (ageMs + 1)).toBeCloseTo(
        ageMs / (ageMs + 1),
        6,
      )
    }),
  )
})

test('without data the median is 5 to 20 s, and ten observations outweigh that', () => {
  const fresh = fitProcessingTimes([], WINDOW_MS)
  expect(processingTimeQuantileMs(fresh, 0.5)).toBeGreaterThan(5_000)
  expect(processingTimeQuantileMs(fresh, 0.5)).toBeLessThan(20_000)
  const ten = fitProcessingTimes(polledEvery(5_000, 120_000, 10, 2), WINDOW_MS)
  expect(processingTimeQuantileMs(ten, 0.5)).toBeGreaterThan(100_000)
  expect(processingTimeQuantileMs(ten, 0.5)).toBeLessThan(140_000)
})

test('polls that came late do not teach that processing is slow', () => {
  const early = polledEvery(2_000, 10_000, 40, 3)
  const before = fitProcessingTimes(early, WINDOW_MS)
  const late = Array.from({ length: 60 }, () => ({ afterMs: 0, untilMs: 600_000 }))
  const after = fitProcessingTimes([...early, ...late], WINDOW_MS)
  expect(processingTimeQuantileMs(after, 0.5)).toBeLessThan(processingTimeQuantileMs(before, 0.5) * 1.1)
  const onlyLate = fitProcessingTimes(late, WINDOW_MS)
  expect(processingTimeQuantileMs(onlyLate, 0.5)).toBeLessThan(20_000)
})

test.each([
  1, 2, 3, 4, 5,
])('150 completions after a service became five times slower, the model has followed (seed %i)', (seed) => {
  const seen = [...polledEvery(2_000, 30_000, 150, seed), ...polledEvery(2_000, 150_000, 150, seed + 100)]
  const model = fitProcessingTimes(seen, WINDOW_MS)
  expect(processingTimeQuantileMs(model, 0.15)).toBeGreaterThan(100_000)
  expect(processingTimeQuantileMs(model, 0.9)).toBeLessThan(200_000)
})

test.each([
  1, 2, 3, 4, 5,
])('150 completions after a service became five times faster, the model has followed (seed %i)', (seed) => {
  const seen = [...polledEvery(2_000, 150_000, 150, seed), ...polledEvery(2_000, 30_000, 150, seed + 100)]
  const model = fitProcessingTimes(seen, WINDOW_MS)
  expect(processingTimeQuantileMs(model, 0.5)).toBeLessThan(35_000)
  expect(processingTimeQuantileMs(model, 0.9)).toBeLessThan(45_000)
})

test('a small probability always remains that a transaction is not done', () => {
  const model = fitProcessingTimes(polledEvery(2_000, 10_000, 300, 5), WINDOW_MS)
  expect(1 - doneBy(model, 3 * 3_600_000)).toBeGreaterThan(1e-6)
  expect(doneBy(model, 60_000)).toBeGreaterThan(0.97)
})

test('with all times divided by ten, the model’s ages are divided by ten', () => {
  const seen = polledEvery(2_000, 30_000, 60, 6)
  const tenth = seen.map(({ afterMs, untilMs }) => ({ afterMs: afterMs / 10, untilMs: untilMs / 10 }))
  const [full, compressed] = [fitProcessingTimes(seen, WINDOW_MS), fitProcessingTimes(tenth, WINDOW_MS / 10)]
  for (const share of [0.1, 0.5, 0.9])
    expect(processingTimeQuantileMs(compressed, share) * 10).toBeCloseTo(processingTimeQuantileMs(full, share), 3)
})

test('transactions that are not done yet make the model slower', () => {
  const seen = polledEvery(2_000, 10_000, 20, 7)
  const live = Array.from({ length: 10 }, () => ({ afterMs: 60_000, untilMs: Number.POSITIVE_INFINITY }))
  expect(processingTimeQuantileMs(fitProcessingTimes([...seen, ...live], WINDOW_MS), 0.9)).toBeGreaterThan(60_000)
})
