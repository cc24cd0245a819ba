/** The most characters that outboxd keeps of a text from outside. */
export const textCharsMax = {
  /** Indexed, and a btree entry has at most 2,704 bytes. */
  code: 64,
  /** Indexed. A longer id counts as missing, because half an id is a different id. */
  id: 255,
  /** Such as an unknown status. */
  word: 100,
  /** An error, a cause, a problem's detail. */
  message: 500,
  /** The errors of all fields of a record. */
  errors: 20_000,
  excerpt: 2_048,
} as const

/**
 * Cuts a text before it is stored or shown. NUL and halves of surrogate pairs become U+FFFD, because Postgres refuses
 * them.
 *
 * Database sessions replace characters that the encoding cannot hold (src/postgres/serverEncoding.ts). `escapeControl`
 * (src/plainText.ts) makes a text safe for a terminal.
 *
 * @param charsMax in UTF-16 units, including the ellipsis
 */
export function boundText(text: string, charsMax: number = Number.POSITIVE_INFINITY): string {
  const isCut = text.length > charsMax
  const kept = isCut ? text.slice(0, charsMax - 1).replace(/[\ud800-\udbff]$/, '') : text
  const whole = kept.replaceAll('\0', '\uFFFD').toWellFormed()
  return isCut ? `${whole}…` : whole
}

/**
 * Escapes characters beyond ASCII for JSON, so that Postgres stores an id, a key or a body unchanged or refuses it. A
 * session may replace unescaped characters.
 */
export function escapeNonAscii(text: string): string | { readonly rawJSON: string } {
  return beyondAscii.test(text) ? JSON.rawJSON(JSON.stringify(text).replace(everyBeyondAscii, escaped)) : text
}

export const escapeNonAsciiFields = (record: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, typeof value === 'string' ? escapeNonAscii(value) : value]),
  )

const beyondAscii = /[\u0080-\uffff]/
const everyBeyondAscii = /[\u0080-\uffff]/g
const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
