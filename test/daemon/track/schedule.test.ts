import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  arrivals,
  distributions,
  every,
  learned,
  oracle,
  percentile,
  type Scenario,
  simulate,
} from '../../../bench/simulation.ts'
import { fitProcessingTimes, type Observation } from '../../../src/daemon/track/processingTimes.ts'
import { certainty, nextPollMs, type Pressure } from '../../../src/daemon/track/schedule.ts'

const WINDOW_MS = 60_000

const anyModel = fc
  .array(
    fc.record({
      afterMs: fc.double({ min: 0, max: 1e7, noNaN: true }),
      widthMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
    }),
    { maxLength: 60 },
  )
  .map((seen) =>
    fitProcessingTimes(
      seen.map(({ afterMs, widthMs }): Observation => ({ afterMs, untilMs: afterMs + widthMs })),
      WINDOW_MS,
    ),
  )
const anyCertainty = fc.double({ min: 0.01, max: 1, noNaN: true })
const anyAgeMs = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e8, noNaN: true }))
const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

const idle: Pressure = { capacity: 100, slotsOnSubmissions: 6, submissionsReady: 0, accepted: 3 }
const saturated: Pressure = { capacity: 100, slotsOnSubmissions: 48, submissionsReady: 500, accepted: 30 }
/** Seen often enough for the plan to stand on it, and always at the first poll. */
const known = fitProcessingTimes(
  Array.from({ length: 300 }, (_, i) => ({ afterMs: 0, untilMs: 20_000 + 50 * i })),
  WINDOW_MS,
)

test('the next poll is never in the past, never NaN, never further off than ten windows', () => {
  fc.assert(
    fc.property(anyModel, anyAgeMs, anyCertainty, anyRandom, (model, ageMs, sure, random) => {
      const waitMs = nextPollMs(model, ageMs, sure, random)
      expect(waitMs).toBeGreaterThanOrEqual(WINDOW_MS / 240)
      expect(waitMs).toBeLessThanOrEqual(WINDOW_MS * 10)
    }),
    { numRuns: 200 },
  )
})

test('more certainty never polls earlier', () => {
  fc.assert(
    fc.property(anyModel, anyAgeMs, anyCertainty, anyCertainty, anyRandom, (model, ageMs, one, other, random) => {
      const [less, more] = [Math.min(one, other), Math.max(one, other)]
      expect(nextPollMs(model, ageMs, more, random)).toBeGreaterThanOrEqual(
        nextPollMs(model, ageMs, less, random) - 1e-6,
      )
    }),
    { numRuns: 200 },
  )
})

test('a record costs 1 / certainty polls, where the model is right', () => {
  for (const sure of [0.1, 0.3, 0.6, 0.9]) {
    let polls = 0
    for (let i = 0; i < 2_000; i++) {
      const doneMs = -20_000 * Math.log(1 - (i + 0.5) / 2_000)
      for (let ageMs = 0; ageMs < doneMs; polls++) ageMs += nextPollMs(exponential, ageMs, sure, stratified(polls))
    }
    expect(polls / 2_000).toBeGreaterThan(0.85 / sure)
    expect(polls / 2_000).toBeLessThan(1.15 / sure)
  }
})
const exponential = fitProcessingTimes(
  Array.from({ length: 300 }, (_, i) => {
    const doneMs = -20_000 * Math.log(1 - (((i * 0.618034) % 1) * 0.998 + 0.001))
    return { afterMs: doneMs * 0.97, untilMs: doneMs * 1.03 }
  }),
  WINDOW_MS,
)
function stratified(i: number): number {
  return 0.02 + 0.98 * ((i * 0.754877) % 1)
}

test('a small share of first polls explores, whatever the pressure; later ones do not', () => {
  expect(nextPollMs(known, 0, 1, 0.01)).toBeLessThan(nextPollMs(known, 0, 1, 0.5))
  expect(nextPollMs(known, 0, 1, 0.03)).toBe(nextPollMs(known, 0, 1, 0.5))
  expect(nextPollMs(known, 10_000, 1, 0.01)).toBe(nextPollMs(known, 10_000, 1, 0.5))
})

test('submissions that wait make it sure, idle slots make it early', () => {
  expect(certainty(saturated, known)).toBeGreaterThan(0.94)
  expect(certainty(idle, known)).toBeLessThan(0.12)
})

test('more waiting, sent or in flight never makes it less sure, whatever the numbers', () => {
  const anyCount = fc.integer({ min: 0, max: 10_000 })
  fc.assert(
    fc.property(anyModel, anyCount, anyCount, anyCount, anyCount, (model, capacity, sent, ready, accepted) => {
      const sure = certainty({ capacity, slotsOnSubmissions: sent, submissionsReady: ready, accepted }, model)
      expect(sure).toBeGreaterThan(0)
      expect(sure).toBeLessThanOrEqual(1)
      for (const more of [
        { slotsOnSubmissions: sent + 5 },
        { submissionsReady: ready + 5 },
        { accepted: accepted + 5 },
      ]) {
        const pressure = { capacity, slotsOnSubmissions: sent, submissionsReady: ready, accepted, ...more }
        expect(certainty(pressure, model)).toBeGreaterThanOrEqual(sure)
      }
    }),
    { numRuns: 100 },
  )
})

test('with little learned it asks more often, for the first answers teach most', () => {
  expect(certainty(saturated, fitProcessingTimes([], WINDOW_MS))).toBeLessThan(0.5)
})

function scenario(over: Partial<Scenario>): Scenario {
  return {
    limit: 100,
    windowMs: WINDOW_MS,
    answerMs: 30,
    maxInFlight: 8,
    durationMs: 40 * WINDOW_MS,
    countFromMs: 15 * WINDOW_MS,
    processingMs: () => 30_000,
    arrivalsAtMs: undefined,
    schedule: learned(WINDOW_MS),
    seed: 5,
    ...over,
  }
}

test.each(
  Object.entries(distributions(WINDOW_MS)),
)('saturated, %s: nearly all 50 a minute, and no 429', (_, processingMs) => {
  const outcome = simulate(scenario({ processingMs }))
  expect(outcome.recordsPerWindow).toBeGreaterThan(45.5)
  expect(outcome.recordsPerWindow).toBeLessThan(52)
  expect(outcome.refused).toBe(0)
})

test.each(
  Object.entries(distributions(WINDOW_MS)).filter(([name]) => !name.startsWith('humps')),
)('idle, %s: known within 5 s, and a new record is sent at once', (_, processingMs) => {
  const arrivalsAtMs = arrivals(6, WINDOW_MS, 40 * WINDOW_MS, 3)
  const outcome = simulate(scenario({ processingMs, arrivalsAtMs }))
  expect(percentile(outcome.delaysMs, 0.95)).toBeLessThan(5_000)
  expect(percentile(outcome.submitWaitsMs, 0.95)).toBeLessThan(500)
  expect(outcome.refused).toBe(0)
})

test('polling every 5 s gets far fewer through: the simulation tells schedules apart', () => {
  expect(simulate(scenario({ schedule: every(5_000, 'every 5 s') })).recordsPerWindow).toBeLessThan(35)
  expect(simulate(scenario({ schedule: oracle })).recordsPerWindow).toBeGreaterThan(49)
})

test('after a burst of 200 the polls become early again', () => {
  const burst = Array.from({ length: 200 }, () => 20 * WINDOW_MS)
  const after = arrivals(6, WINDOW_MS, 10 * WINDOW_MS, 4).map((atMs) => atMs + 27 * WINDOW_MS)
  const arrivalsAtMs = [...arrivals(6, WINDOW_MS, 20 * WINDOW_MS, 3), ...burst, ...after]
  const outcome = simulate(scenario({ arrivalsAtMs, processingMs: () => 30_000 }))
  const lastOfBurst = outcome.finished.filter(({ knownAtMs }) => knownAtMs < 27 * WINDOW_MS).at(-1)
  expect(lastOfBurst?.knownAtMs).toBeLessThan(25.5 * WINDOW_MS)
  const later = outcome.finished.filter(({ knownAtMs }) => knownAtMs > 27 * WINDOW_MS).map(({ delayMs }) => delayMs)
  expect(percentile(later, 0.95)).toBeLessThan(5_000)
})

test('a service that becomes five times slower is followed while saturated', () => {
  const outcome = simulate(
    scenario({
      processingMs: (random, nowMs) => (nowMs < 15 * WINDOW_MS ? 1 : 5) * 30_000 * (0.9 + 0.2 * random()),
      countFromMs: 25 * WINDOW_MS,
    }),
  )
  expect(outcome.recordsPerWindow).toBeGreaterThan(45)
})
