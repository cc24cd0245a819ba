import { digitsOf, numberDigitsMax, writtenDigits } from './parseExactly.ts'
import type { FieldError } from './problemAnswer.ts'

/** How deep arrays and objects in a request may lie within each other: docs/sandbox.md, "Bounds". */
export const depthMax = 100

/**
 * What of a body, read by `parseExactly`, is beyond the bounds of what the sandbox and its queue can keep: undefined where
 * nothing is. Valid JSON may hold half a character, a number of a hundred thousand digits, a thousand arrays in each other.
 *
 * @see docs/interface.md, 2: the bounds of numbers and texts are not shown
 */
export function beyondBounds(body: unknown): FieldError | undefined {
  return firstBeyond(body, [])
}

/** Whether JSON has the character U+0000, which jsonb does not. An escaped backslash before `u0000` is none. */
export function holdsNul(json: string): boolean {
  return /(?<!\\)(?:\\\\)*\\u0000/.test(json)
}

function firstBeyond(value: unknown, path: readonly string[]): FieldError | undefined {
  const detail = whatIsBeyond(value, path.length)
  if (detail !== undefined) return { field: path.join('.') || '(body)', detail }
  if (typeof value !== 'object' || value === null || digitsOf(value) !== undefined) return undefined
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
  const digits = digitsOf(value)
  if (digits !== undefined) {
    return writtenDigits(digits) > numberDigitsMax
      ? `must have at most ${numberDigitsMax} digits, written out without an exponent`
      : undefined
  }
  return typeof value === 'object' && value !== null && depth >= depthMax
    ? `lies too deep: at most ${depthMax} arrays and objects within each other`
    : undefined
}
