/**
 * Where a database does not know what its bytes mean (SQL_ASCII), a text that is no UTF-8 fails the statement that would
 * give it to us, and with it the rows beside it. Compared with its hexadecimal digits, as Postgres has no question for it
 * that raises no error: two for a byte, those above 7f as RFC 3629, 4, puts them in order.
 */
const trail = '[89ab][0-9a-f]'
const utf8InHex = `^(${[
  '[0-7][0-9a-f]',
  `(c[2-9a-f]|d[0-9a-f])${trail}`,
  `e0[ab][0-9a-f]${trail}`,
  `e[1-9abcef](${trail}){2}`,
  `ed[89][0-9a-f]${trail}`,
  `f0[9ab][0-9a-f](${trail}){2}`,
  `f[1-3](${trail}){3}`,
  `f48[0-9a-f](${trail}){2}`,
].join('|')})*$`

/** What a text column's value is in a database of this encoding, for reading it without an error. */
export interface ReadableText {
  /** The value as text; where it cannot be read, `\x` and its hexadecimal digits. */
  readonly text: string
  /** Whether it can be read; null where every value can. */
  readonly isReadable: string | null
}

/** @param type below all domains, by its SQL name */
export function readableText(expression: string, type: string, encoding: string): ReadableText {
  const plain = `(${expression})::text`
  if (encoding !== 'SQL_ASCII' || !mayHoldAnyByte.test(type)) return { text: plain, isReadable: null }
  const hex = `encode(convert_to(${plain}, 'SQL_ASCII'), 'hex')`
  const isReadable = `(${expression} is null or ${hex} ~ '${utf8InHex}')`
  return { text: `case when ${isReadable} then ${plain} else '\\x' || ${hex} end`, isReadable }
}

const mayHoldAnyByte = /^(text|character varying|character|bpchar|"?char"?|name|citext|USER-DEFINED|.*\.citext)$/
