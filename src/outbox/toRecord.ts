import type { OutboxRecord } from '../model.ts'
import type { OutboxTable } from './outboxTable.ts'

/** A row as it was read. */
export interface RawRow {
  outboxId: string
  type: string
  key: string | null
  createdAt: string | null
  stamp: string
  raw: string | Buffer | null
  /** Null for NULL. */
  bytes: number | null
}

/** Makes a record of a row. What cannot be read of it is the record's own trouble: it says why. Pure. */
export function toRecord(table: OutboxTable, bytesMax: number, { raw, bytes, ...row }: RawRow): OutboxRecord {
  const { encoding } = table.payload.kind === 'column' ? table.payload : { encoding: 'utf-8' }
  const { outboxId, type, createdAt, stamp } = row
  const { key, unreadable } = readKey(row.key)
  const payload =
    unreadable === null ? readPayloadText({ raw, bytes }, encoding, bytesMax) : { payload: null, unreadable }
  return { outboxId, type, key, createdAt, stamp, ...payload }
}

/** The ledger's index of keys cannot hold entries above 2,704 bytes. */
const keyBytesMax = 2_500

function readKey(key: string | null): { key: string | null; unreadable: string | null } {
  const bytes = key === null ? 0 : Buffer.byteLength(key)
  if (bytes <= keyBytesMax) return { key, unreadable: null }
  return { key: null, unreadable: `the key has ${bytes} bytes, more than the ${keyBytesMax} that a key may have` }
}

/**
 * Makes JSON text of one row's payload. What cannot be read is that row's own trouble: it says why, and no other row
 * hears of it. Whether the text is JSON is the mapping's to find out.
 */
export function readPayloadText(
  { raw, bytes }: Pick<RawRow, 'raw' | 'bytes'>,
  encoding: string,
  bytesMax: number,
): { payload: string | null; unreadable: string | null } {
  const unreadable = (why: string) => ({ payload: null, unreadable: why })
  if (bytes === null) return unreadable('the payload is missing: it is NULL in the outbox')
  if (bytes > bytesMax)
    return unreadable(`the payload has ${bytes} bytes, more than the ${bytesMax} that PAYLOAD_MAX_BYTES allows`)
  const text = decode(raw ?? '', encoding)
  if (text === null) return unreadable(`the payload is not ${encoding}`)
  if (text.includes('\0')) return unreadable('the payload contains a NUL character, which JSON text cannot')
  return { payload: text, unreadable: null }
}

/** The text, or null if the bytes are none of this encoding. */
function decode(raw: string | Buffer, encoding: string): string | null {
  if (encoding === 'base64' || encoding === 'hex') {
    const text = (typeof raw === 'string' ? raw : raw.toString('latin1')).replace(/\s+/g, '')
    return isBinaryText[encoding](text) ? decodeBytes(Buffer.from(text, encoding), 'utf-8') : null
  }
  return typeof raw === 'string' ? raw : decodeBytes(raw, encoding)
}

// Single characters, not groups of four: a repeated group fills the stack of the regular expression at 4 MB.
const isBinaryText = {
  base64: (text: string) => text.length % 4 === 0 && !/[^A-Za-z0-9+/]/.test(text.replace(/={1,2}$/, '')),
  hex: (text: string) => text.length % 2 === 0 && !/[^0-9A-Fa-f]/.test(text),
}

function decodeBytes(bytes: Buffer, charset: string): string | null {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}
