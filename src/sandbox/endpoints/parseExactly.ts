import type { FieldError } from './problemAnswer.ts'

export const numberDigitsMax = 100

/**
 * Keeps a number that a double would change as `JSON.rawJSON`, which `JSON.stringify` writes unchanged.
 *
 * @throws SyntaxError; RangeError if it is nested too deeply
 */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, { source }) => {
    if (typeof value !== 'number' || source === undefined) return value
    return String(value) === source ? value : JSON.rawJSON(source)
  })
}

export function exactNumberText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return JSON.isRawJSON(value) ? (value as { rawJSON: string }).rawJSON : undefined
}

/** Counts digits as jsonb writes them, without exponent: 4 for `1.5e3`, 4 for `1e-3`. */
export function countWrittenDigits(number: string): number {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? []
  const shift = Number(exponent)
  return Math.max(1, whole.length + shift) + Math.max(0, fraction.length - shift)
}

export const jsonDepthMax = 100

/**
 * Finds the first part of a body that Postgres cannot store: half a character, a number or a nesting beyond the bounds.
 */
export function findUnstorablePart(body: unknown): FieldError | undefined {
  return firstBeyond(body, [])
}

/** True if JSON has U+0000, which jsonb cannot store. An escaped backslash before `u0000` does not count. */
export function hasNul(json: string): boolean {
  return /(?<!\\)(?:\\\\)*\\u0000/.test(json)
}

function firstBeyond(value: unknown, path: readonly string[]): FieldError | undefined {
  const detail = whatIsBeyond(value, path.length)
  if (detail !== undefined) return { field: path.join('.') || '(body)', detail }
  if (typeof value !== 'object' || value === null || exactNumberText(value) !== undefined) return undefined
  for (const [key, member] of Object.entries(value)) {
    if (!key.isWellFormed()) return { field: path.join('.') || '(body)', detail: `has a key with ${halfCharacter}` }
    const beyond = firstBeyond(member, [...path, key])
    if (beyond !== undefined) return beyond
  }
  return undefined
}

const halfCharacter = 'half a character (a surrogate without its other half)'

function whatIsBeyond(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : `holds ${halfCharacter}`
  const digits = exactNumberText(value)
  if (digits !== undefined) {
    return countWrittenDigits(digits) > numberDigitsMax
      ? `must have at most ${numberDigitsMax} digits, written out without an exponent`
      : undefined
  }
  return typeof value === 'object' && value !== null && depth >= jsonDepthMax
    ? `lies too deep: at most ${jsonDepthMax} arrays and objects within each other`
    : undefined
}

/** Keeps only numbers that a double cannot hold as `JSON.rawJSON`. @throws SyntaxError */
export function readExactNumbers(json: string): unknown {
  return JSON.parse(json, (_key, value: unknown, { source }) => {
    if (typeof value !== 'number' || source === undefined) return value
    return canonicalNumber(String(value)) === canonicalNumber(source) ? value : JSON.rawJSON(source)
  })
}

export function canonicalNumber(number: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const counting = digits.replace(/0+$/, '')
  if (counting === '') return whole === '' ? number : '0' // Infinity and NaN stay
  return `${sign}${counting}e${Number(exponent) - fraction.length + digits.length - counting.length}`
}
