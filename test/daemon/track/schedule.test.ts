import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fitProcessingTimes, type ObservedProcessingTime } from '../../../src/daemon/track/processingTimes.ts'
import { expectedPollCount, pollDelayAfterNotDoneMs } from '../../../src/daemon/track/schedule.ts'
import { playBurst } from '../../../tools/bench/harness/simulatedBurst.ts'
import { every, learned, oracle } from '../../../tools/bench/harness/simulatedSchedules.ts'
import { arrivals, distributions, percentile } from '../../../tools/bench/harness/workloads.ts'
import { type Scenario, simulate } from '../../../tools/bench/simulation.ts'

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
      seen.map(({ afterMs, widthMs }): ObservedProcessingTime => ({ afterMs, untilMs: afterMs + widthMs })),
      WINDOW_MS,
    ),
  )
const anyPriceMs = fc.double({ min: 0, max: 1e9, noNaN: true })
const anyAgeMs = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e8, noNaN: true }))
const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

/** Enough observations for a plan, all from first polls. */
const known = fitProcessingTimes(
  Array.from({ length: 300 }, (_, i) => ({ afterMs: 0, untilMs: 20_000 + 50 * i })),
  WINDOW_MS,
)

test('the next poll comes after at least 1/240 of a window and at most ten windows', () => {
  fc.assert(
    fc.property(anyModel, anyAgeMs, anyPriceMs, anyRandom, (model, ageMs, priceMs, random) => {
      const waitMs = pollDelayAfterNotDoneMs(model, ageMs, priceMs, random)
      expect(waitMs).toBeGreaterThanOrEqual(WINDOW_MS / 240)
      expect(waitMs).toBeLessThanOrEqual(WINDOW_MS * 10)
    }),
    { numRuns: 200 },
  )
})

test('at a higher price the first poll never comes earlier, and a record never costs more polls', () => {
  fc.assert(
    fc.property(anyModel, anyPriceMs, anyPriceMs, anyRandom, (model, one, other, random) => {
      const [low, high] = [Math.min(one, other), Math.max(one, other)]
      expect(pollDelayAfterNotDoneMs(model, 0, high, random)).toBeGreaterThanOrEqual(
        pollDelayAfterNotDoneMs(model, 0, low, random) - 1e-6,
      )
      expect(expectedPollCount(model, 0, high)).toBeLessThanOrEqual(expectedPollCount(model, 0, low) + 1e-9)
    }),
    { numRuns: 200 },
  )
})

test('a record costs as many polls as expected if the model is right', () => {
  for (const priceMs of [500, 3_000, 20_000, 60_000]) {
    let polls = 0
    for (let i = 0; i < 2_000; i++) {
      const doneMs = -20_000 * Math.log(1 - (i + 0.5) / 2_000)
      for (let ageMs = 0; ageMs < doneMs; polls++)
        ageMs += pollDelayAfterNotDoneMs(exponential, ageMs, priceMs, stratified(polls))
    }
    const expected = expectedPollCount(exponential, 0, priceMs)
    expect(polls / 2_000).toBeGreaterThan(0.85 * expected)
    expect(polls / 2_000).toBeLessThan(1.15 * expected)
  }
})

test('at a given price no other plan costs less than the chosen one', () => {
  const costOf = (price: number, plannedFor: number) => {
    let cost = 0
    for (let i = 0; i < 2_000; i++) {
      const doneMs = -20_000 * Math.log(1 - (i + 0.5) / 2_000)
      let ageMs = 0
      for (; ageMs < doneMs; cost += price) ageMs += pollDelayAfterNotDoneMs(exponential, ageMs, plannedFor, 0.5)
      cost += ageMs - doneMs
    }
    return cost
  }
  for (const other of [500, 2_000, 30_000]) expect(costOf(8_000, 8_000)).toBeLessThan(costOf(8_000, other))
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

test('a small share of first polls comes early to explore, whatever the price; later polls do not', () => {
  expect(pollDelayAfterNotDoneMs(known, 0, 600_000, 0.01)).toBeLessThan(pollDelayAfterNotDoneMs(known, 0, 600_000, 0.5))
  expect(pollDelayAfterNotDoneMs(known, 0, 600_000, 0.03)).toBe(pollDelayAfterNotDoneMs(known, 0, 600_000, 0.5))
  expect(pollDelayAfterNotDoneMs(known, 10_000, 600_000, 0.01)).toBe(
    pollDelayAfterNotDoneMs(known, 10_000, 600_000, 0.5),
  )
})

test('with little learned, polls come more often, because the first answers teach most', () => {
  expect(pollDelayAfterNotDoneMs(fitProcessingTimes([], WINDOW_MS), 0, 600_000, 0.5)).toBeLessThan(60_000)
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
    schedule: learned({ windowMs: WINDOW_MS, limit: 100 }),
    seed: 5,
    ...over,
  }
}

test.each(
  Object.entries(distributions(WINDOW_MS)),
)('saturated, %s: nearly all 50 a minute, and no 429', (_, processingMs) => {
  const outcome = simulate(scenario({ processingMs }))
  expect(outcome.recordsPerWindow).toBeGreaterThan(47)
  expect(outcome.recordsPerWindow).toBeLessThan(52)
  expect(outcome.refused).toBe(0)
})

test.each(
  Object.entries(distributions(WINDOW_MS)).filter(([name]) => !name.startsWith('humps')),
)('idle, %s: known within 5 s, and a new record is sent at once', (_, processingMs) => {
  const outcomes = [3, 4, 5, 6, 7, 8].map((seed) => {
    const arrivalsAtMs = arrivals(6, WINDOW_MS, 40 * WINDOW_MS, seed)
    return simulate(
      scenario({ processingMs, arrivalsAtMs, schedule: learned({ windowMs: WINDOW_MS, limit: 100, seed }), seed }),
    )
  })
  const allOf = (name: 'delaysMs' | 'submitWaitsMs') => outcomes.flatMap((outcome) => outcome[name])
  expect(percentile(allOf('delaysMs'), 0.95)).toBeLessThan(5_000)
  expect(percentile(allOf('submitWaitsMs'), 0.95)).toBeLessThan(500)
  expect(outcomes.map(({ refused }) => refused)).toEqual([0, 0, 0, 0, 0, 0])
})

test('polling every 5 s gets far fewer records through, so the simulation can tell schedules apart', () => {
  expect(simulate(scenario({ schedule: every(5_000, 'every 5 s') })).recordsPerWindow).toBeLessThan(35)
  expect(simulate(scenario({ schedule: oracle })).recordsPerWindow).toBeGreaterThan(49)
})

test('after a burst of 200 records, later ones are known within 5 s again', () => {
  const burst = Array.from({ length: 200 }, () => 20 * WINDOW_MS)
  const after = arrivals(6, WINDOW_MS, 10 * WINDOW_MS, 4).map((atMs) => atMs + 27 * WINDOW_MS)
  const arrivalsAtMs = [...arrivals(6, WINDOW_MS, 20 * WINDOW_MS, 3), ...burst, ...after]
  const outcome = simulate(scenario({ arrivalsAtMs, processingMs: () => 30_000 }))
  const lastOfBurst = outcome.finished.filter(({ knownAtMs }) => knownAtMs < 27 * WINDOW_MS).at(-1)
  expect(lastOfBurst?.knownAtMs).toBeLessThan(25.5 * WINDOW_MS)
  const later = outcome.finished.filter(({ knownAtMs }) => knownAtMs > 27 * WINDOW_MS).map(({ delayMs }) => delayMs)
  expect(percentile(later, 0.95)).toBeLessThan(5_000)
})

test('a saturated service that becomes five times slower is followed', () => {
  const outcome = simulate(
    scenario({
      processingMs: (random, nowMs) => (nowMs < 15 * WINDOW_MS ? 1 : 5) * 30_000 * (0.9 + 0.2 * random()),
      countFromMs: 25 * WINDOW_MS,
    }),
  )
  expect(outcome.recordsPerWindow).toBeGreaterThan(45)
})

// The short form of bench:simulate. The schedule before the price of a poll: 2.4 times every 10 s with 100, 1.4 times every 30 s with 300.
test.each([
  { records: 100, best: 10_000 },
  { records: 300, best: 30_000 },
])('a batch of $records after an idle time, some of them slow, is known as soon as with the best interval', ({
  records,
  best,
}) => {
  const processingMs = distributions(WINDOW_MS)['humps 2-5 s, 120-300 s'] ?? (() => 0)
  const play = (schedule: Scenario['schedule']) => playBurst({ records, processingMs, schedule, seed: 2 })
  const own = play(learned({ windowMs: WINDOW_MS, limit: 100 }))
  expect(own.meanMs).toBeLessThan(1.03 * play(every(best, 'best')).meanMs)
  expect(own.meanMs).toBeLessThan(1.25 * play(oracle).meanMs)
  expect(own.refused).toBe(0)
})
