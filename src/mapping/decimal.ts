/** An exact decimal number: ±0.`digits` × 10^`point`. `digits` has no zero at either end; empty means zero. */
export interface Decimal {
  readonly negative: boolean
  readonly digits: string
  readonly digitsBeforePoint: number
}

export type Rounding = 'half-even' | 'half-up'

/** Longer than any intended number, and short enough to calculate with. */
export const numberCharactersMax = 1000

const jsonNumber = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
const plainNumbers = { '.': /^([+-]?)(\d+)(?:\.(\d+))?$/, ',': /^([+-]?)(\d+)(?:,(\d+))?$/ }

/** What stands between a text's whole digits and its decimals. */
export type DecimalSeparator = keyof typeof plainNumbers

/** Reads a JSON number, also with an exponent. */
export function parseJsonNumber(text: string): Decimal | null {
  return parse(text, jsonNumber)
}

/** Reads a number from a text value: digits, an optional sign, a separator. Nothing may separate thousands. */
export function parsePlainNumber(text: string, separator: DecimalSeparator): Decimal | null {
  return parse(text, plainNumbers[separator])
}

/** Does not count leading zeros. */
export function countWholeDigits(number: Decimal): number {
  return Math.max(number.digitsBeforePoint, 0)
}

/** Does not count trailing zeros. */
export function countDecimals(number: Decimal): number {
  return Math.max(number.digits.length - number.digitsBeforePoint, 0)
}

/**
 * Rounds to `scale` decimals.
 *
 *               2.345  2.355  -2.345  2.3451
 *   half-even   2.34   2.36   -2.34   2.35
 *   half-up     2.35   2.36   -2.35   2.35     (a half goes away from zero, as merchants do)
 */
export function roundDecimal(number: Decimal, scale: number, rounding: Rounding): Decimal {
  const keep = number.digitsBeforePoint + scale
  if (number.digits.length <= keep) return number
  if (keep < 0) return zero
  const kept = number.digits.slice(0, keep)
  const rest = number.digits.slice(keep)
  if (!roundsUp(kept, rest, rounding)) return normalize(number.negative, kept, number.digitsBeforePoint)
  const raised = String(BigInt(kept) + 1n) // BigInt('') is 0n
  return normalize(number.negative, raised, number.digitsBeforePoint + raised.length - keep)
}

/** Writes a JSON number with exactly `scale` decimals. `number` must not have more decimals. */
export function writeDecimal(number: Decimal, scale: number): string {
  const { digits, digitsBeforePoint } = number
  const whole = digitsBeforePoint > 0 ? digits.slice(0, digitsBeforePoint).padEnd(digitsBeforePoint, '0') : '0'
  const decimals = ('0'.repeat(Math.max(-digitsBeforePoint, 0)) + digits.slice(Math.max(digitsBeforePoint, 0))).padEnd(
    scale,
    '0',
  )
  return (number.negative ? '-' : '') + whole + (scale > 0 ? `.${decimals}` : '')
}

const zero: Decimal = { negative: false, digits: '', digitsBeforePoint: 0 }

function parse(text: string, form: RegExp): Decimal | null {
  if (text.length > numberCharactersMax) return null
  const match = form.exec(text)
  if (match === null) return null
  const [, sign, whole = '', decimals = '', exponent = '0'] = match
  // A huge exponent becomes Infinity, which every type refuses as too large.
  return normalize(sign === '-', whole + decimals, whole.length + Number(exponent))
}

/** Removes the zeros at both ends. Zero has one form, so -0 is 0. */
function normalize(negative: boolean, digits: string, point: number): Decimal {
  let start = 0
  let end = digits.length
  while (digits.charCodeAt(start) === 0x30) start++
  while (end > start && digits.charCodeAt(end - 1) === 0x30) end--
  return start === end ? zero : { negative, digits: digits.slice(start, end), digitsBeforePoint: point - start }
}

function roundsUp(kept: string, rest: string, rounding: Rounding): boolean {
  if (rest !== '5') return rest >= '5' // `rest` does not end in a zero, so only '5' is exactly a half
  return rounding === 'half-up' || (kept.charCodeAt(kept.length - 1) & 1) === 1
}
