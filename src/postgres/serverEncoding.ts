import type pg from 'pg'

export async function readServerEncoding(db: {
  query<Row extends pg.QueryResultRow>(text: string): Promise<{ rows: Row[] }>
}): Promise<string> {
  const { rows } = await db.query<{ encoding: string }>(`select current_setting('server_encoding') as encoding`)
  return rows[0]?.encoding ?? 'UTF8'
}

export function findEncodingRefusalClause(encoding: string): string | null {
  if (encoding !== 'SQL_ASCII') return null
  return 'its encoding is SQL_ASCII, so Postgres does not know the characters of texts, and nothing would be sent exactly. Dump the database and restore it into a UTF8 database. Or make a view of the outbox in a UTF8 database (postgres_fdw), and name that database and view in DATABASE_URL and OUTBOX_TABLE'
}

export function findEncodingWarningClause(encoding: string): string | null {
  if (encoding === 'UTF8') return null
  return `its encoding is ${encoding}, not UTF8. Characters that this encoding cannot hold are replaced in messages. A record is rejected if its id, key or body has such a character. Use a UTF8 database to avoid both`
}

/**
 * Returns a function that puts question marks for characters that a database of this encoding cannot hold. Null for
 * UTF8 and other multi-byte encodings: in those, Postgres refuses such characters, and an outcome is then written
 * without texts.
 */
export function createCharacterReplacer(encoding: string): ((text: string) => string) | null {
  if (!/^(LATIN|ISO_8859_|WIN|KOI8R)/.test(encoding)) return null
  const held = heldCharacters(encoding)
  return (text) => text.replace(/[\u0080-\u{10ffff}]/gu, (each) => (held.has(each) ? each : '?'))
}

function heldCharacters(encoding: string): ReadonlySet<string> {
  const decoder = new TextDecoder(labelOf(encoding))
  // In Postgres the bytes below 0xa0 are controls, but the Encoding standard reads LATIN1 as windows-1252.
  const lettersBegin = /^(LATIN|ISO)/.test(encoding) ? 0xa0 : 0x80
  const controls = range(0x80, lettersBegin).map((byte) => String.fromCharCode(byte))
  const letters = range(lettersBegin, 0x100).map((byte) => decoder.decode(Uint8Array.of(byte)))
  return new Set([...controls, ...letters.filter((each) => !/[\u0080-\u009f\ufffd]/.test(each))])
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

const latinParts = [1, 2, 3, 4, 9, 10, 13, 14, 15, 16]
const otherLabels: Readonly<Record<string, string>> = { KOI8R: 'koi8-r', WIN866: 'ibm866' }

const labelOf = (encoding: string): string =>
  otherLabels[encoding] ??
  encoding
    .replace(/^LATIN(\d+)$/, (_, n) => `ISO-8859-${latinParts[n - 1]}`)
    .replace(/^WIN/, 'windows-')
    .replaceAll('_', '-')
