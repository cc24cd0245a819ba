import type pg from 'pg'

/** What stands for a character of our own sentences that many encodings lack. One for one, so that a bounded text stays bounded. */
const alike: ReadonlyMap<string, string> = new Map([
  ['…', '.'],
  ['‘', "'"],
  ['’', "'"],
  ['“', '"'],
  ['”', '"'],
  ['„', '"'],
  ['–', '-'],
  ['—', '-'],
  ['→', '>'],
  ['•', '*'],
])

/** Encodings of one byte a character, by Postgres' name, with their labels in the Encoding standard. */
const labels: Readonly<Record<string, string>> = {
  LATIN2: 'iso-8859-2',
  LATIN3: 'iso-8859-3',
  LATIN4: 'iso-8859-4',
  LATIN6: 'iso-8859-10',
  LATIN7: 'iso-8859-13',
  LATIN8: 'iso-8859-14',
  LATIN9: 'iso-8859-15',
  LATIN10: 'iso-8859-16',
  ISO_8859_5: 'iso-8859-5',
  ISO_8859_6: 'iso-8859-6',
  ISO_8859_7: 'iso-8859-7',
  ISO_8859_8: 'iso-8859-8',
  KOI8R: 'koi8-r',
  WIN866: 'ibm866',
  WIN874: 'windows-874',
  WIN1250: 'windows-1250',
  WIN1251: 'windows-1251',
  WIN1252: 'windows-1252',
  WIN1253: 'windows-1253',
  WIN1254: 'windows-1254',
  WIN1256: 'windows-1256',
  WIN1257: 'windows-1257',
  WIN1258: 'windows-1258',
}

/** The encoding of a database, by Postgres' name. */
export async function readEncoding(db: {
  query<Row extends pg.QueryResultRow>(text: string): Promise<{ rows: Row[] }>
}): Promise<string> {
  const { rows } = await db.query<{ encoding: string }>(`select current_setting('server_encoding') as encoding`)
  return rows[0]?.encoding ?? 'UTF8'
}

/** Why a database of this encoding cannot be used, and what to do; null if it can. */
export function refusedEncoding(encoding: string): string | null {
  if (encoding !== 'SQL_ASCII') return null
  return 'its encoding is SQL_ASCII, so it does not know which characters its texts hold, and nothing would be sent exactly. Convert it: dump it and restore it into a database of encoding UTF8. Or give outboxd a view: make a view of the outbox in a UTF8 database (postgres_fdw), and name that database and view in DATABASE_URL and OUTBOX_TABLE'
}

/** What to know of a database of this encoding; null for UTF8. */
export function encodingWarning(encoding: string): string | null {
  if (encoding === 'UTF8') return null
  return `its encoding is ${encoding}, not UTF8: characters that it cannot hold are replaced in messages, and a record whose id, key or body has one is rejected. A UTF8 database has neither limit`
}

/** Replaces characters that a database cannot hold, one for one. */
export interface Replacement {
  /** In a value: by one that looks alike, or by a question mark. */
  ofValue(text: string): string
  /** In a statement: the signs that our own statements have. A word of outbox.yaml is left for Postgres to refuse. */
  ofStatement(sql: string): string
}

/**
 * Returns what replaces the characters that a database of this encoding cannot hold. Null for UTF8, and for encodings of
 * several bytes: Postgres refuses what they cannot hold, and an outcome is written without its texts then.
 *
 * @param encoding as `server_encoding` says it
 */
export function createReplacement(encoding: string): Replacement | null {
  const held = heldCharacters(encoding)
  if (held === null) return null
  const replaced = (text: string, other: (each: string) => string) =>
    text.replace(/[\u0080-\u{10ffff}]/gu, (each) => (held.has(each) ? each : (alike.get(each) ?? other(each))))
  return {
    ofValue: (text) => replaced(text, () => '?'),
    ofStatement: (sql) => replaced(sql, (each) => each),
  }
}

/** The characters beyond ASCII that an encoding holds; null if they are not known, or it holds all. */
function heldCharacters(encoding: string): ReadonlySet<string> | null {
  // The Encoding standard takes these two for windows-1252 and windows-1254. In Postgres they are what they say.
  if (encoding === 'LATIN1') return new Set(upperBytes.map((byte) => String.fromCharCode(byte)))
  if (encoding === 'LATIN5') return new Set(upperBytes.map((byte) => turkish.get(byte) ?? String.fromCharCode(byte)))
  const label = labels[encoding]
  if (label === undefined) return null
  const decoder = new TextDecoder(label)
  return new Set(
    upperBytes.map((byte) => decoder.decode(Uint8Array.of(byte))).filter((each) => !/[\u0080-\u009f\ufffd]/.test(each)),
  )
}

const upperBytes = Array.from({ length: 0x80 }, (_, i) => 0x80 + i)
const turkish: ReadonlyMap<number, string> = new Map([
  [0xd0, 'Ğ'],
  [0xdd, 'İ'],
  [0xde, 'Ş'],
  [0xf0, 'ğ'],
  [0xfd, 'ı'],
  [0xfe, 'ş'],
])
