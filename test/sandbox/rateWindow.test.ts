import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RateWindow } from '../../src/sandbox/gate/rateWindow.ts'

const second = 1_000_000

/** The most of `timesUs` that any window of `windowUs` holds, found by looking at the window that ends at each. */
function mostInAnyWindow(timesUs: readonly number[], windowUs: number): number {
  return Math.max(0, ...timesUs.map((end) => timesUs.filter((time) => time <= end && end - time < windowUs).length))
}

test('the 101st request is refused until the first has left the window', () => {
  const window = new RateWindow(100, 60 * second)
  for (let n = 0; n < 100; n += 1) expect(window.take('a', n).admitted).toBe(true)
  const refused = window.take('a', 100)
  expect(refused).toEqual({ admitted: false, remaining: 0, retryAfterSeconds: 60 })
  expect(window.take('a', 60 * second - 1).admitted).toBe(false)
  expect(window.take('a', 60 * second).admitted).toBe(true)
  expect(window.take('a', 60 * second).admitted).toBe(false)
})

test('remaining counts down, and up again as requests leave the window', () => {
  const window = new RateWindow(3, second)
  expect([0, 10, 20].map((us) => window.take('a', us).remaining)).toEqual([2, 1, 0])
  expect(window.take('a', second + 10).remaining).toBe(1)
})

test('clients do not take from each other', () => {
  const window = new RateWindow(1, second)
  expect(window.take('a', 0).admitted).toBe(true)
  expect(window.take('b', 0).admitted).toBe(true)
  expect(window.take('a', 1).admitted).toBe(false)
})

test('a request that was overtaken still meets those that had left the window of the one that overtook it', () => {
  const window = new RateWindow(2, 500)
  expect([0, 10].map((us) => window.take('a', us).admitted)).toEqual([true, true])
  expect(window.take('a', 520).admitted).toBe(true)
  expect(window.take('a', 490).admitted).toBe(false)
})

test('no window ever holds more than the limit, in whatever order requests are counted', () => {
  const arrivals = fc.array(fc.nat(3000), { maxLength: 200 })
  const swaps = fc.array(fc.nat(400), { minLength: 200, maxLength: 200 })
  fc.assert(
    fc.property(arrivals, swaps, fc.integer({ min: 1, max: 7 }), (times, lateness, limit) => {
      const window = new RateWindow(limit, 500)
      // Counted up to 400 later than it arrived: tokens take their time to verify.
      const counted = times
        .map((time, index) => ({ time, at: time + (lateness[index] ?? 0) }))
        .sort((a, b) => a.at - b.at)
      const admitted = counted.filter(({ time }) => window.take('a', time).admitted).map(({ time }) => time)
      expect(mostInAnyWindow(admitted, 500)).toBeLessThanOrEqual(limit)
      if (times.length > 0) expect(admitted.length).toBeGreaterThan(0)
    }),
  )
})

test('in order of arrival, a request is refused only when its window is full', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(3000), { maxLength: 200 }), fc.integer({ min: 1, max: 7 }), (times, limit) => {
      const window = new RateWindow(limit, 500)
      const admitted: number[] = []
      for (const time of times.toSorted((a, b) => a - b)) {
        const full = admitted.filter((other) => time - other < 500).length >= limit
        expect(window.take('a', time).admitted).toBe(!full)
        if (!full) admitted.push(time)
      }
    }),
  )
})

test('who has made no request for a window is forgotten, and nobody else is', () => {
  const window = new RateWindow(2, second)
  for (let n = 0; n < 50_000; n += 1) {
    window.take(`address ${n}`, n * 1000)
    window.take('steady', n * 1000)
  }
  expect(window.clients).toBeLessThanOrEqual(10_001)
  expect(window.take('steady', 49_999_500).admitted).toBe(false)
})

test('a request costs the same at a limit of 100,000', () => {
  const window = new RateWindow(100_000, second)
  const started = performance.now()
  for (let n = 0; n < 300_000; n += 1) window.take('a', n * 10)
  expect(performance.now() - started).toBeLessThan(2000) // it took ten, and takes a tenth of one
})
