/** The most digits that a number in a request may have, written out without an exponent: docs/sandbox.md, "Bounds". */
export const numberDigitsMax = 100

/**
 * Reads JSON without rounding a number.
 *
 * A number whose digits a double cannot give back becomes `JSON.rawJSON`, which `JSON.stringify` writes as it came.
 *
 * @throws SyntaxError for what is not JSON, RangeError for what is nested too deeply
 */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_key: string, value: unknown, context?: { source?: string }) => {
    const digits = context?.source
    if (typeof value !== 'number' || digits === undefined) return value
    return String(value) === digits ? value : rawNumber(digits)
  })
}

/** The digits of a number that `parseExactly` has read, as they came; undefined for anything else. */
export function digitsOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return isRawNumber(value) ? value.rawJSON : undefined
}

/** How many digits a number has without its exponent, as Postgres's jsonb writes it: 5 for `1.5e3`, 4 for `1e-3`. */
export function writtenDigits(number: string): number {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? []
  const shift = Number(exponent)
  return Math.max(1, whole.length + shift) + Math.max(0, fraction.length - shift)
}

/** `JSON.rawJSON` (Node 21 and later), which TypeScript's library does not declare yet. */
const exactJson = JSON as unknown as { rawJSON(text: string): unknown; isRawJSON(value: unknown): boolean }

function rawNumber(digits: string): unknown {
  return exactJson.rawJSON(digits)
}

function isRawNumber(value: unknown): value is { rawJSON: string } {
  return exactJson.isRawJSON(value)
}
