import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Mapping } from '../../src/mapping/mapping.ts'
import { anyString } from '../support/anyString.ts'
import { mappingOf, mapValue, numRuns } from './mappingOf.ts'

// The oracle shares nothing with the mapper: numbers are fractions of two bigints.

interface Fraction {
  over: bigint
  under: bigint
}

function fractionOf(text: string): Fraction {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [whole = '', decimals = ''] = mantissa.replace('+', '').split('.')
  const shift = BigInt(exponent) - BigInt(decimals.length)
  const over = BigInt(whole.replace('-', '') + decimals) * (whole.startsWith('-') ? -1n : 1n)
  return shift < 0n ? { over, under: 10n ** -shift } : { over: over * 10n ** shift, under: 1n }
}

function same(a: Fraction, b: Fraction): boolean {
  return a.over * b.under === b.over * a.under
}

const mappings = new Map<string, Mapping>()
function amountMapping(precision: number, scale: number, options = ''): Mapping {
  const text = `from: v, type: "decimal(${precision},${scale})", decimal_separator: "."${options}`
  const mapping = mappings.get(text) ?? mappingOf(text)
  mappings.set(text, mapping)
  return mapping
}

const digit = fc.constantFrom(...'0123456789')
const digits = (min: number, max: number) => fc.array(digit, { minLength: min, maxLength: max }).map((d) => d.join(''))
const type = fc
  .integer({ min: 1, max: 38 })
  .chain((precision) => fc.record({ precision: fc.constant(precision), scale: fc.integer({ min: 0, max: precision }) }))

/** Every way to write ±whole.decimals as JSON: zeros added, the point moved by an exponent, or all of it in text. */
function written(whole: string, decimals: string) {
  const plain = fc
    .record({ sign: fc.constantFrom('', '-'), zeros: fc.integer({ min: 0, max: 5 }), point: fc.boolean() })
    .map(({ sign, zeros, point }) => {
      const tail = decimals + '0'.repeat(zeros)
      const ifWhole = point ? '.0' : ''
      return sign + (whole.replace(/^0+(?=.)/, '') || '0') + (tail === '' ? ifWhole : `.${tail}`)
    })
  const text = fc
    .record({ plain, zeros: fc.integer({ min: 0, max: 5 }), plus: fc.boolean() })
    .map(({ plain, zeros, plus }) => {
      const unsigned = '0'.repeat(zeros) + plain.replace('-', '')
      if (plain.startsWith('-')) return `-${unsigned}`
      return plus ? `+${unsigned}` : unsigned
    })
  const shifted = fc
    .record({ sign: fc.constantFrom('', '-'), e: fc.constantFrom('e', 'E'), zeros: fc.integer({ min: 0, max: 30 }) })
    .map(({ sign, e, zeros }) => {
      const coefficient = (whole + decimals + '0'.repeat(zeros)).replace(/^0+(?=.)/, '') || '0'
      return `${sign}${coefficient}${e}${-(decimals.length + zeros)}`
    })
  return fc.oneof(
    plain.map((number) => ({ number, json: number })),
    shifted.map((number) => ({ number, json: number })),
    text.map((number) => ({ number, json: `"${number}"` })),
  )
}

test('every decimal within decimal(p,s) is sent as exactly that number', () => {
  const within = type.chain(({ precision, scale }) =>
    fc
      .tuple(digits(0, precision - scale), digits(0, scale))
      .chain(([whole, decimals]) => written(whole, decimals))
      .map((value) => ({ ...value, precision, scale })),
  )
  fc.assert(
    fc.property(within, fc.boolean(), ({ number, json, precision, scale }, asText) => {
      const mapped = mapValue(amountMapping(precision, scale, asText ? ', as: string' : ''), json)
      if (mapped.kind === 'invalid') throw new Error(mapped.errors[0]?.message)
      const sent = /^\{"v":("?)(-?(?:0|[1-9]\d*)(?:\.(\d+))?)\1\}$/.exec(mapped.body)
      expect(sent?.[1]).toBe(asText ? '"' : '')
      expect(sent?.[3]?.length ?? 0).toBe(scale)
      expect(same(fractionOf(sent?.[2] ?? ''), fractionOf(number))).toBe(true)
      expect(sent?.[2]).not.toMatch(/^-[0.]+$/)
    }),
    { numRuns },
  )
})

test('every number or text outside decimal(p,s) is an error that names the field, and nothing is sent', () => {
  const nonZero = fc.constantFrom(...'123456789')
  const outside = type.chain(({ precision, scale }) => {
    const tooPrecise = fc
      .tuple(digits(0, precision - scale), digits(scale, scale + 20), nonZero)
      .chain(([whole, decimals, last]) => written(whole, decimals + last))
    const tooLarge = fc
      .tuple(nonZero, digits(precision - scale, precision - scale + 20), digits(0, scale))
      .chain(([first, rest, decimals]) => written(first + rest, decimals))
    const tooLargeExponent = fc
      .tuple(nonZero, fc.integer({ min: precision - scale, max: Number.MAX_SAFE_INTEGER }))
      .map(([first, exponent]) => ({ json: `${first}e${exponent}` }))
    const tooSmallExponent = fc
      .tuple(nonZero, fc.integer({ min: scale + 1, max: Number.MAX_SAFE_INTEGER }))
      .map(([first, exponent]) => ({ json: `${first}E-${exponent}` }))
    const notPlain = fc
      .oneof(
        anyString(),
        fc.constantFrom(
          'NaN',
          'Infinity',
          '-Infinity',
          '1,5',
          '1.234,50',
          '1e2',
          '.5',
          '5.',
          '--1',
          '0x1',
          '１',
          '1 ',
          '',
        ),
        fc.double().map((number) => `${number} EUR`),
      )
      .filter((text) => !/^[+-]?[0-9]+(\.[0-9]+)?$/.test(text))
      .map((text) => ({ json: JSON.stringify(text) }))
    return fc
      .oneof(tooPrecise, tooLarge, tooLargeExponent, tooSmallExponent, notPlain)
      .map(({ json }) => ({ json, precision, scale }))
  })
  fc.assert(
    fc.property(outside, ({ json, precision, scale }) => {
      const mapped = mapValue(amountMapping(precision, scale), json)
      expect(mapped).toMatchObject({ kind: 'invalid', errors: [{ field: 'v', from: 'v' }] })
      expect(mapped).not.toHaveProperty('body')
    }),
    { numRuns },
  )
})

test('rounding gives the nearest number of the type, and a half is rounded as the mapping says', () => {
  const numbers = fc
    .tuple(
      fc.oneof(digits(1, 12), fc.constant('0')),
      fc.oneof(
        digits(0, 8),
        digits(0, 4).map((d) => `${d}5`),
        digits(1, 2).map((d) => `00000${d}`),
      ),
    )
    .chain(([whole, decimals]) => written(whole, decimals))
  const rounding = fc.constantFrom('half-even', 'half-up')
  fc.assert(
    fc.property(numbers, fc.integer({ min: 0, max: 5 }), rounding, ({ number, json }, scale, round) => {
      const mapped = mapValue(amountMapping(38, scale, `, round: ${round}`), json)
      if (mapped.kind === 'invalid') throw new Error(mapped.errors[0]?.message)
      const sent = fractionOf(mapped.body.slice('{"v":'.length, -1))
      expect(same(sent, rounded(fractionOf(number), scale, round))).toBe(true)
    }),
    { numRuns },
  )
})

function rounded({ over, under }: Fraction, scale: number, round: string): Fraction {
  const unit = 10n ** BigInt(scale)
  const size = over < 0n ? -over : over
  const floor = (size * unit) / under
  const twiceRest = 2n * (size * unit - floor * under)
  const up = twiceRest > under || (twiceRest === under && (round === 'half-up' || floor % 2n === 1n))
  return { over: (floor + (up ? 1n : 0n)) * (over < 0n ? -1n : 1n), under: unit }
}
