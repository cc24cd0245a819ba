import type { OutboxRecord } from '../model.ts'
import type { OutboxTable } from './outboxTable.ts'
import { readPayloadText } from './payloadText.ts'
import type { ReadRow } from './readRows.ts'

/** Makes a record of a row. What cannot be read of it is the record's own trouble: it says why. Pure. */
export function toRecord(table: OutboxTable, bytesMost: number, { raw, bytes, ...row }: ReadRow): OutboxRecord {
  const { encoding } = table.payload.kind === 'column' ? table.payload : { encoding: 'utf-8' }
  const { outboxId, type, createdAt, stamp } = row
  const { key, unreadable } = readKey(row.key)
  const payload =
    unreadable === null ? readPayloadText({ raw, bytes }, encoding, bytesMost) : { payload: null, unreadable }
  return { outboxId, type, key, createdAt, stamp, ...payload }
}

/** The ledger's index of keys cannot hold entries above 2,704 bytes. */
const keyBytesMax = 2_500

function readKey(key: string | null): { key: string | null; unreadable: string | null } {
  const bytes = key === null ? 0 : Buffer.byteLength(key)
  if (bytes <= keyBytesMax) return { key, unreadable: null }
  return { key: null, unreadable: `the key has ${bytes} bytes, more than the ${keyBytesMax} that a key may have` }
}
