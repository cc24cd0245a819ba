import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BudgetPressure, PollSchedule, planPolls } from '../../src/daemon/pollSchedule.ts'
import { playBurst } from '../../tools/bench/harness/simulatedBurst.ts'
import { every, learned, oracle } from '../../tools/bench/harness/simulatedSchedules.ts'
import { arrivals, distributions, percentile } from '../../tools/bench/harness/workloads.ts'
import { type Scenario, simulate } from '../../tools/bench/simulation.ts'

const WINDOW_MS = 60_000
const idle: BudgetPressure = { limit: 100, submissionsWaiting: 0, accepted: 1, submissionsPerWindow: 6 }
const scarce: BudgetPressure = { limit: 100, submissionsWaiting: 500, accepted: 50, submissionsPerWindow: 50 }

const anyTimeMs = fc.double({ min: 0, max: 1e7, noNaN: true })
const anyCount = fc.integer({ min: 0, max: 100_000 })
const anyPressure = fc.record({
  limit: fc.integer({ min: 1, max: 10_000 }),
  submissionsWaiting: anyCount,
  accepted: anyCount,
  submissionsPerWindow: fc.integer({ min: 0, max: 10_000 }),
})

/** Ages at which a transaction is polled that is not done before `untilMs`. */
function pollAges(schedule: PollSchedule, pressure: BudgetPressure, untilMs: number): number[] {
  const ages: number[] = []
  for (let ageMs = 0; ageMs < untilMs; ages.push(ageMs)) ageMs += schedule.nextPollDelayMs(ageMs, pressure)
  return ages
}

const pollsUntilDone = (schedule: PollSchedule, pressure: BudgetPressure, timesMs: readonly number[]) =>
  timesMs.reduce((sum, ms) => sum + pollAges(schedule, pressure, ms).length, 0) / timesMs.length

describe('nextPollDelayMs', () => {
  test('the next poll comes after at least 1/240 of a window and at most 60 windows', () => {
    fc.assert(
      fc.property(fc.array(anyTimeMs, { maxLength: 60 }), anyTimeMs, anyPressure, (timesMs, ageMs, pressure) => {
        const delayMs = new PollSchedule(timesMs, WINDOW_MS).nextPollDelayMs(ageMs, pressure)
        expect(delayMs).toBeGreaterThanOrEqual(WINDOW_MS / 240)
        expect(delayMs).toBeLessThanOrEqual(WINDOW_MS * 60)
      }),
    )
  })

  test('however many submissions need the limit, transactions of whom most are done in 5 s are polled within a window', () => {
    const times = [...Array(279).fill(5_000), ...Array(21).fill(3_600_000)]
    const pressure = { limit: 100, submissionsWaiting: 0, accepted: 600, submissionsPerWindow: 98 }
    expect(new PollSchedule(times, WINDOW_MS).nextPollDelayMs(0, pressure)).toBeLessThanOrEqual(WINDOW_MS)
  })

  test.each([
    [[]],
    [[90_000, 90_000, 90_000, 90_000]],
  ])('with the processing times %j, polls begin at a twelfth of a window and come at half as much again', (timesMs) => {
    expect(pollAges(new PollSchedule(timesMs, WINDOW_MS), scarce, 20_000)).toEqual([
      5_000, 7_500, 11_250, 16_875, 25_312.5,
    ])
  })

  test('a transaction that is older than all known ones is polled at half as much again of its age', () => {
    const schedule = new PollSchedule(Array(5).fill(20_000), WINDOW_MS)
    expect(schedule.nextPollDelayMs(20_000, idle)).toBe(10_000)
    expect(schedule.nextPollDelayMs(300_000, scarce)).toBe(150_000)
    expect(schedule.nextPollDelayMs(19_999, idle)).toBe(250)
  })

  test('polls of five equal times come at that time, and if they cost little also earlier', () => {
    const schedule = new PollSchedule(Array(5).fill(20_000), WINDOW_MS)
    expect(pollAges(schedule, scarce, 20_000)).toEqual([20_000])
    const early = pollAges(schedule, { ...idle, accepted: 0 }, 20_000)
    expect(early.at(-1)).toBe(20_000)
    expect(early.length).toBeGreaterThan(1)
  })

  test('early polls come at one of five ages from a sixtieth of a window to the longest known time', () => {
    const schedule = new PollSchedule(Array(5).fill(81_000), WINDOW_MS) // 1, 3, 9, 27 and 81 s
    expect(pollAges(schedule, { ...idle, accepted: 0 }, 81_000)).toEqual([9_000, 27_000, 81_000])
  })

  test.each([
    { meanWindows: 0.5, fifths: 1, waiting: [5, 17, 53] },
    { meanWindows: 10, fifths: 0.1, waiting: [53, 130, 300] },
  ])('a transaction that takes $meanWindows windows delays polls like $fifths fifths of a waiting record', ({
    meanWindows,
    fifths,
    waiting,
  }) => {
    const timesMs = Array.from({ length: 300 }, (_, i) => meanWindows * WINDOW_MS * (0.5 + ((i * 7) % 300) / 299))
    const schedule = new PollSchedule(timesMs, WINDOW_MS)
    const delayMs = (submissionsWaiting: number, accepted: number) =>
      schedule.nextPollDelayMs(0, { ...idle, submissionsWaiting, accepted })
    for (const records of waiting) expect(delayMs(0, (records * 5) / fifths)).toBe(delayMs(records, 0))
    expect(new Set(waiting.map((records) => delayMs(records, 0))).size).toBe(3)
  })

  test('newer times count more: of a service that became faster most polls are early', () => {
    const became = (fromMs: number, toMs: number) =>
      new PollSchedule([...Array(150).fill(fromMs), ...Array(150).fill(toMs)], WINDOW_MS)
    expect(became(60_000, 5_000).nextPollDelayMs(0, { ...idle, submissionsWaiting: 50 })).toBe(5_000)
    expect(became(5_000, 60_000).nextPollDelayMs(0, { ...idle, submissionsWaiting: 50 })).toBe(60_000)
  })

  test('the more submissions wait, the later the first poll', () => {
    const timesMs = Array.from({ length: 300 }, (_, i) => 10_000 + 100 * ((i * 7) % 300))
    const schedule = new PollSchedule(timesMs, WINDOW_MS)
    fc.assert(
      fc.property(anyCount, anyCount, (one, other) => {
        const [few, many] = [Math.min(one, other), Math.max(one, other)]
        const first = (submissionsWaiting: number) => schedule.nextPollDelayMs(0, { ...idle, submissionsWaiting })
        expect(first(many)).toBeGreaterThanOrEqual(first(few))
      }),
    )
  })

  test('polls become rarer until they and the submissions need at most 95 % of the limit', () => {
    const timesMs = Array.from({ length: 300 }, (_, i) => 10_000 + 100 * ((i * 7) % 300))
    const schedule = new PollSchedule(timesMs, WINDOW_MS)
    const pollsAt = (submissionsPerWindow: number) =>
      pollsUntilDone(schedule, { ...idle, submissionsPerWindow }, timesMs)
    for (const submissionsPerWindow of [10, 20, 30, 40])
      expect(submissionsPerWindow * (1 + pollsAt(submissionsPerWindow))).toBeLessThan(97)
    expect(pollsAt(6)).toBeGreaterThan(pollsAt(20))
    expect(pollsAt(20)).toBeGreaterThan(pollsAt(40))
  })

  test('with all times divided by ten, polls come in a tenth of the time', () => {
    const timesMs = Array.from({ length: 50 }, (_, i) => 1_000 * (3 + ((i * 7) % 50)))
    const tenth = new PollSchedule(
      timesMs.map((ms) => ms / 10),
      WINDOW_MS / 10,
    )
    const full = new PollSchedule(timesMs, WINDOW_MS)
    for (const pressure of [idle, scarce])
      expect(tenth.nextPollDelayMs(0, pressure) * 10).toBeCloseTo(full.nextPollDelayMs(0, pressure), 6)
  })
})

describe('planPolls', () => {
  const fewTimes = fc.array(
    fc.record({ ms: fc.integer({ min: 0, max: 50 }), weight: fc.integer({ min: 1, max: 9 }) }),
    {
      minLength: 1,
      maxLength: 9,
    },
  )
  interface Cost {
    total: number
    polls: number
  }

  function costOf(times: readonly { ms: number; weight: number }[], pollsMs: readonly number[], priceMs: number): Cost {
    let [total, polls] = [0, 0]
    for (const { ms, weight } of times) {
      const last = pollsMs.findIndex((pollMs) => pollMs >= ms)
      total += weight * ((pollsMs[last] ?? Number.NaN) - ms + priceMs * (last + 1))
      polls += weight * (last + 1)
    }
    return { total, polls }
  }

  /** Tries each choice of polls at known times, the longest always included. */
  function leastCost(times: readonly { ms: number; weight: number }[], priceMs: number): number {
    const sorted = times.map(({ ms }) => ms).sort((a, b) => a - b)
    let least = Number.POSITIVE_INFINITY
    for (let choice = 0; choice < 2 ** (sorted.length - 1); choice++) {
      const pollsMs = sorted.filter((_, i) => i === sorted.length - 1 || (choice >> i) % 2 === 1)
      least = Math.min(least, costOf(times, pollsMs, priceMs).total)
    }
    return least
  }

  test('no other choice of polls costs less, and the plan knows how many polls a record takes', () => {
    fc.assert(
      fc.property(fewTimes, fc.integer({ min: 1, max: 60 }), (times, priceMs) => {
        const { shortest, pollsPerRecord } = planPolls(
          times.toSorted((a, b) => b.ms - a.ms),
          priceMs,
        )
        const pollsMs: number[] = []
        for (let time = shortest; time !== null; ) {
          const { pollAtMs } = time
          pollsMs.push(pollAtMs)
          while (time !== null && time.ms <= pollAtMs) time = time.longer
        }
        const cost = costOf(times, pollsMs, priceMs)
        expect(cost.total).toBeCloseTo(leastCost(times, priceMs), 6)
        expect(pollsPerRecord).toBeCloseTo(cost.polls / times.reduce((sum, { weight }) => sum + weight, 0), 6)
      }),
      { numRuns: 1_000 },
    )
  })
})

/** The short form of bench:simulate. */
describe('in the simulation', () => {
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
    expect(outcome.recordsPerWindow).toBeGreaterThan(46)
    expect(outcome.recordsPerWindow).toBeLessThan(52)
    expect(outcome.refused).toBe(0)
  })

  test.each(
    Object.entries(distributions(WINDOW_MS)).filter(([name]) => !name.startsWith('humps')),
  )('idle, %s: known within 3 s on average, and a new record is sent at once', (_, processingMs) => {
    const outcomes = [3, 4, 5].map((seed) => {
      const arrivalsAtMs = arrivals(6, WINDOW_MS, 40 * WINDOW_MS, seed)
      return simulate(scenario({ processingMs, arrivalsAtMs, schedule: learned(WINDOW_MS), seed }))
    })
    const allOf = (name: 'delaysMs' | 'submitWaitsMs') => outcomes.flatMap((outcome) => outcome[name])
    const delaysMs = allOf('delaysMs')
    expect(delaysMs.reduce((sum, ms) => sum + ms, 0) / delaysMs.length).toBeLessThan(3_000)
    expect(percentile(allOf('submitWaitsMs'), 0.95)).toBeLessThan(500)
    expect(outcomes.map(({ refused }) => refused)).toEqual([0, 0, 0])
  })

  test('polling every 5 s gets far fewer records through, so the simulation can tell schedules apart', () => {
    expect(simulate(scenario({ schedule: every(5_000, 'every 5 s') })).recordsPerWindow).toBeLessThan(35)
    expect(simulate(scenario({ schedule: oracle })).recordsPerWindow).toBeGreaterThan(49)
  })

  test('after a burst of 200 records, later ones are known within 5 s again', () => {
    const burst = Array.from({ length: 200 }, () => 20 * WINDOW_MS)
    const after = arrivals(6, WINDOW_MS, 10 * WINDOW_MS, 4).map((atMs) => atMs + 27 * WINDOW_MS)
    const arrivalsAtMs = [...arrivals(6, WINDOW_MS, 20 * WINDOW_MS, 3), ...burst, ...after]
    const outcome = simulate(scenario({ arrivalsAtMs }))
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

  test.each([
    { records: 100, best: 10_000 },
    { records: 300, best: 30_000 },
  ])('a batch of $records after an idle time, some of them slow, is known as soon as with the best interval', ({
    records,
    best,
  }) => {
    const processingMs = distributions(WINDOW_MS)['humps 2-5 s, 120-300 s'] ?? (() => 0)
    const play = (schedule: Scenario['schedule']) => playBurst({ records, processingMs, schedule, seed: 2 })
    const own = play(learned(WINDOW_MS))
    expect(own.meanMs).toBeLessThan(1.03 * play(every(best, 'best')).meanMs)
    expect(own.meanMs).toBeLessThan(1.25 * play(oracle).meanMs)
    expect(own.refused).toBe(0)
  })
})
