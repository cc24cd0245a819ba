import { expect, test } from 'vitest'
import { RemainingCounts } from '../../../src/daemon/dispatch/remainingCounts.ts'

/** A limit of 100, and a clock that the test sets. */
function setup() {
  const time = { ms: 0 }
  const stopwatch = () => {
    const sinceMs = time.ms
    return () => time.ms - sinceMs
  }
  return { time, counts: new RemainingCounts({ stopwatch }, 100) }
}

test('a low count of one endpoint alone is another client’s', () => {
  const { counts } = setup()
  expect(counts.isOfSharedLimit('submit', 20, 90)).toBe(true)
  expect(counts.isOfSharedLimit('status', 18, 90)).toBe(true)
})

test.each([
  ['after', ['status', 90], ['order', 19]],
  ['before', ['order', 19], ['status', 90]],
] as const)('a low count just %s a high one of another endpoint is of its own limit from then on', (_, one, other) => {
  const { counts, time } = setup()
  counts.isOfSharedLimit(one[0], one[1], 90)
  time.ms += 1_000
  counts.isOfSharedLimit(other[0], other[1], 90)
  time.ms += 60_000
  expect(counts.isOfSharedLimit('order', 18, 90)).toBe(false)
  expect(counts.isOfSharedLimit('status', 30, 90)).toBe(true)
})

test('counts that are far apart in time do not contradict each other', () => {
  const { counts, time } = setup()
  counts.isOfSharedLimit('status', 90, 90)
  time.ms += 2_000
  expect(counts.isOfSharedLimit('submit', 20, 90)).toBe(true)
})

test('small differences and missing counts say nothing', () => {
  const { counts } = setup()
  counts.isOfSharedLimit('status', 86, 90)
  expect(counts.isOfSharedLimit('submit', null, 90)).toBe(true)
  expect(counts.isOfSharedLimit('submit', 90, 90)).toBe(true)
  expect(counts.isOfSharedLimit('status', 20, 90)).toBe(false)
})

test('an endpoint that states as many as are free again is of the shared limit', () => {
  const { counts, time } = setup()
  counts.isOfSharedLimit('status', 90, 90)
  expect(counts.isOfSharedLimit('submit', 20, 90)).toBe(false)
  counts.isOfSharedLimit('submit', 90, 90)
  time.ms += 10_000
  expect(counts.isOfSharedLimit('submit', 20, 90)).toBe(true)
})
