import { expect, test } from 'vitest'
import { isTooSlow, measureSlowdown } from '../../../tools/erp/slowdown.ts'

/**
 * Pairs of confirmations on a machine that is busy with other work. Each takes 40 to 160 ms, and with change capture
 * `slower` times that.
 */
function busyPairs(count: number, slower: number, seed: number) {
  let state = seed
  const random = () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
  const took = () => 40 * (1 + 3 * random() ** 4)
  return Array.from({ length: count }, () => ({ with: took() * slower, without: took() }))
}

test('the slowdown is the median ratio, with an interval by ranks', () => {
  const pairs = Array.from({ length: 101 }, (_, i) => ({ with: 1 + i / 100, without: 1 }))
  expect(measureSlowdown(pairs)).toEqual({ pairs: 101, median: 1.5, low: 1.33, high: 1.67 })
})

test('of 300 runs on a busy machine none fails up to a slowdown of 5 %, and most fail at 50 %', () => {
  const failed = (slower: number) =>
    Array.from({ length: 300 }, (_, seed) => isTooSlow(measureSlowdown(busyPairs(100, slower, seed + 1)))).filter(
      Boolean,
    ).length
  expect(failed(1)).toBe(0)
  expect(failed(1.05)).toBe(0)
  expect(failed(1.5)).toBeGreaterThan(250)
})
