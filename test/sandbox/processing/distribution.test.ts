import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseDistribution } from '../../../src/sandbox/processing/distribution.ts'
import { drawFraction } from '../../../src/sandbox/processing/seededRandom.ts'

const forms = ['constant:2', 'constant:30:0.1', 'lognormal:20:0.6', 'humps:0.8:2-5:120-300', 'exponential:20']

function sample(form: string, size = 4000): number[] {
  const distribution = parseDistribution(form)
  if (distribution === undefined) throw new Error(`${form} cannot be read`)
  const seconds = (n: number) => distribution([drawFraction(7, 'time', n), drawFraction(7, 'time again', n)])
  return Array.from({ length: size }, (_, n) => seconds(n)).sort((a, b) => a - b)
}

const median = (sorted: number[]) => sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

test('a constant is constant, and with a spread stays within the spread', () => {
  expect(new Set(sample('constant:2'))).toEqual(new Set([2]))
  const spread = sample('constant:30:0.1')
  expect(spread[0]).toBeGreaterThanOrEqual(27)
  expect(spread.at(-1)).toBeLessThanOrEqual(33)
  expect(mean(spread)).toBeCloseTo(30, 0)
})

test('a log-normal distribution has the given median and a long tail', () => {
  const values = sample('lognormal:20:0.6')
  expect(median(values)).toBeGreaterThan(19)
  expect(median(values)).toBeLessThan(21)
  expect(mean(values)).toBeGreaterThan(22) // 20 * exp(0.18) = 23.9
})

test('two humps have the given ranges and share', () => {
  const values = sample('humps:0.8:2-5:120-300')
  const first = values.filter((value) => value >= 2 && value <= 5).length
  const second = values.filter((value) => value >= 120 && value <= 300).length
  expect(first + second).toBe(values.length)
  expect(first / values.length).toBeCloseTo(0.8, 1)
})

test('an exponential distribution has the given mean', () => {
  expect(mean(sample('exponential:20'))).toBeGreaterThan(19)
  expect(mean(sample('exponential:20'))).toBeLessThan(21)
})

test('the same seed gives the same draws, and another seed or purpose different ones', () => {
  expect(drawFraction(1, 'time', 5)).toBe(drawFraction(1, 'time', 5))
  expect(drawFraction(1, 'time', 5)).not.toBe(drawFraction(2, 'time', 5))
  expect(drawFraction(1, 'time', 5)).not.toBe(drawFraction(1, 'failure', 5))
})

test('a time is between 0 and a day for any draw', () => {
  const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  fc.assert(
    fc.property(fc.constantFrom(...forms, 'lognormal:86400:9', 'exponential:86400'), share, share, (form, a, b) => {
      const seconds = parseDistribution(form)?.([a, b]) ?? -1
      expect(seconds).toBeGreaterThanOrEqual(0)
      expect(seconds).toBeLessThanOrEqual(86_400)
    }),
  )
})

test.each([
  '',
  'constant',
  'constant:-1',
  'constant:2:3',
  'constant:1:0.1:5',
  'lognormal:20',
  'lognormal::',
  'humps:2:1-2:3-4',
  'humps:0.5:5-2:3-4',
  'humps:0.5:1-2',
  'exponential:x',
  'exponential:1e3',
  'weibull:1:2',
])('%j is not a distribution', (text) => {
  expect(parseDistribution(text)).toBeUndefined()
})
