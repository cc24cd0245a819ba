/**
 * Reads JSON without rounding a number.
 *
 * A number whose digits a double cannot give back becomes `JSON.rawJSON`, which `JSON.stringify` writes as it came.
 *
 * @param amountKey numbers under this key become the text of their digits, to be checked by them
 * @throws SyntaxError for what is not JSON, RangeError for what is nested too deeply
 */
export function parseExactly(text: string, amountKey?: string): unknown {
  return JSON.parse(text, (key: string, value: unknown, context?: { source?: string }) => {
    const digits = context?.source
    if (typeof value !== 'number' || digits === undefined) return value
    if (key === amountKey) return digits
    return String(value) === digits ? value : rawNumber(digits)
  })
}

/** `JSON.rawJSON` (Node 21 and later), which TypeScript's library does not declare yet. */
function rawNumber(digits: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(digits)
}
