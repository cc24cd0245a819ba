import type { FieldError } from './problemAnswer.ts'

export const numberDigitsMax = 100

/**
 * Parses JSON. A number that a double would change becomes a `JSON.rawJSON`, which `JSON.stringify` writes unchanged.
 *
 * @throws SyntaxError; RangeError if the text is nested too deeply
 */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, { source }) => {
    if (typeof value !== 'number' || source === undefined) return value
    return String(value) === source ? value : JSON.rawJSON(source)
  })
}

export function findNumberText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return JSON.isRawJSON(value) ? (value as { rawJSON: string }).rawJSON : undefined
}

/** Counts digits as jsonb writes them, without exponent: 4 for `1.5e3`, 4 for `1e-3`. */
function countWrittenDigits(number: string): number {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? []
  const shift = Number(exponent)
  return Math.max(1, whole.length + shift) + Math.max(0, fraction.length - shift)
}

export const jsonDepthMax = 100

/** Finds the first part of a body that Postgres cannot store, or would store in many times its size. */
export function findUnstorablePart(value: unknown, path: readonly string[] = []): FieldError | undefined {
  const isContainer = typeof value === 'object' && value !== null && findNumberText(value) === undefined
  const keys = isContainer && !Array.isArray(value) ? Object.keys(value).join() : ''
  const detail = explainUnstorable(value) ?? explainUnstorable(keys) ?? (isContainer ? explainDepth(path) : undefined)
  if (detail !== undefined) return { field: path.join('.') || '(body)', detail }
  if (!isContainer) return undefined
  for (const [key, member] of Object.entries(value)) {
    const unstorable = findUnstorablePart(member, [...path, key])
    if (unstorable !== undefined) return unstorable
  }
  return undefined
}

function explainUnstorable(value: unknown): string | undefined {
  if (typeof value === 'string') {
    if (value.includes('\u0000')) return 'must not contain the character U+0000'
    return value.isWellFormed() ? undefined : 'must not contain half a character (a surrogate without its other half)'
  }
  return countWrittenDigits(findNumberText(value) ?? '0') > numberDigitsMax
    ? `must have at most ${numberDigitsMax} digits, written out without an exponent`
    : undefined
}

function explainDepth(path: readonly string[]): string | undefined {
  return path.length >= jsonDepthMax ? `is nested too deep: at most ${jsonDepthMax} levels` : undefined
}
