/**
 * JSON from outside as values that can be stored and written back without harm; undefined where it is not JSON.
 *
 * - A number that a double would not write back with the same digits (`1.10`, 20 digits) becomes `JSON.rawJSON`, so that
 *   `JSON.stringify` gives the service's own digits.
 * - NUL and lone surrogates, which Postgres refuses, become U+FFFD.
 * - Each of `secrets` becomes `[redacted]` wherever a string echoes it.
 */
export function readJson(text: string, secrets: readonly string[]): unknown {
  try {
    return JSON.parse(text, (_key, value, context) => {
      if (typeof value === 'number') return exactNumber(value, context.source)
      if (typeof value === 'string') return cleanText(value, secrets)
      return cleanKeys(value)
    })
  } catch {
    return undefined
  }
}

/** The same harmlessness for text that is not JSON. */
export function cleanText(text: string, secrets: readonly string[]): string {
  let clean = text.toWellFormed().replaceAll('\0', '\uFFFD')
  for (const secret of secrets) if (secret !== '') clean = clean.replaceAll(secret, '[redacted]')
  return clean
}

/** The text of a JSON string, or of a number with its own digits, as ids come from services that forget the quotes. */
export function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  return JSON.isRawJSON(value) ? JSON.stringify(value) : null
}

function exactNumber(value: number, source: string | undefined): unknown {
  return source === undefined || String(value) === source ? value : JSON.rawJSON(source)
}

function cleanKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || JSON.isRawJSON(value)) return value
  const entries = Object.entries(value)
  if (entries.every(([key]) => cleanText(key, []) === key)) return value
  return Object.fromEntries(entries.map(([key, inner]) => [cleanText(key, []), inner]))
}
