import type { ServedOutbox } from '../ledger/binding.ts'
import type { OutboxRecord } from '../model/outbox.ts'
import type { Database } from '../postgres/database.ts'
import { isInvalidValueError } from '../postgres/sqlState.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import type { OutboxTable } from './outboxTable.ts'
import { positionStatements } from './position.ts'

/** Statements that read rows. If a statement reads payloads, $1 is the most bytes of a payload. */
export function rowReadStatements(table: OpenTable) {
  const { from, waits, uncaptured, hasNoRecord, needsWork, record, id, idType, idText, order } = table.rows
  const waitingOf = (parameter: number) => `${id} = any($${parameter}::${idType}[]) and ${waits} order by ${order}`
  const any = {
    marked: `select from ${from} where ${waits} limit 1`,
    'end only': `select from ${from} where ${needsWork} limit 1`,
    'append-only': positionStatements(table).any,
  }
  return {
    sizes: `select ${idText} as "outboxId", octet_length(${table.rows.payload}) as bytes from ${from} where ${waitingOf(1)}`,
    byIds: `select ${record} from ${from} where ${waitingOf(2)}`,
    byId: `select ${record} from ${from} where ${id} = $2::${idType}`,
    waiting: `select ${record} from ${from} where ${uncaptured} order by ${order} limit $2`,
    waitingIds: `select ${idText} as "outboxId" from ${from} where ${uncaptured} order by ${order} limit $1`,
    waitsById: `select from ${from} where ${hasNoRecord} and ${id} = $1::${idType}`,
    /** Finds out, at little cost, whether the daemon has to look at the table's rows. */
    any: any[table.form],
  }
}

/** Reads a row in any state. If a query reads the row's content, use `readRecordWithContent`. */
export async function readRecordWithoutQueriedContent(outbox: Outbox, outboxId: string): Promise<OutboxRecord | null> {
  const table = await outbox.open()
  try {
    const { rows } = await table.db.query<RawRow>(rowReadStatements(table).byId, [outbox.bytesMax, outboxId])
    return rows[0] ? toRecord(outbox.described, outbox.bytesMax, rows[0]) : null
  } catch (error) {
    if (isInvalidValueError(error)) return null
    throw error
  }
}

export async function isRowWaiting(outbox: Outbox, outboxId: string): Promise<boolean> {
  const table = await outbox.open()
  return ((await table.db.query(rowReadStatements(table).waitsById, [outboxId])).rowCount ?? 0) > 0
}

/** Reads waiting rows in the order of capture, without locking them. */
export async function readWaitingRows(outbox: Outbox, limit: number): Promise<OutboxRecord[]> {
  const { described, bytesMax } = outbox
  return outbox.queryTable(async (table) => {
    const { rows } = await table.db.query<RawRow>(rowReadStatements(table).waiting, [bytesMax, limit])
    return rows.map((row) => toRecord(described, bytesMax, row))
  })
}

export async function readFirstWaitingRowsThatFit(
  outbox: Outbox,
  limit: number,
): Promise<{ rows: OutboxRecord[]; isCut: boolean }> {
  return outbox.queryTable(async (table) => {
    const { rows: found } = await table.db.query<{ outboxId: string }>(rowReadStatements(table).waitingIds, [limit])
    const outboxIds = found.map(({ outboxId }) => outboxId)
    const rows = await readWaitingRowsThatFit(outbox, table.db, table, outboxIds)
    return { rows, isCut: outboxIds.length === limit || rows.length < outboxIds.length }
  })
}

/** Costs little. */
export function mayHaveWaitingRows(outbox: Outbox, served?: ServedOutbox): Promise<boolean> {
  return outbox.queryTable(async (table) => {
    const { rowCount } = await table.db.query(rowReadStatements(table).any)
    return (rowCount ?? 0) > 0
  }, served)
}

/** The most bytes of payloads in memory at once. Mapping and writing take a few times as much. */
export const batchBytesMax = 16_000_000

/** Reads the first rows: up to `batchBytesMax` bytes, and at least one. */
export async function readWaitingRowsThatFit(
  { described, bytesMax }: Outbox,
  db: Database,
  table: OpenTable,
  outboxIds: readonly string[],
): Promise<OutboxRecord[]> {
  if (outboxIds.length === 0) return []
  const { sizes, byIds } = rowReadStatements(table)
  const { rows } = await db.query<{ outboxId: string; bytes: number | null }>(sizes, [outboxIds])
  const read = await db.query<RawRow>(byIds, [bytesMax, firstThatFit(rows, bytesMax)])
  return read.rows.map((row) => toRecord(described, bytesMax, row))
}

function firstThatFit(rows: readonly { outboxId: string; bytes: number | null }[], bytesMax: number): string[] {
  let sum = 0
  const past = rows.findIndex(({ bytes }) => {
    sum += bytes === null || bytes > bytesMax ? 0 : bytes
    return sum > batchBytesMax
  })
  return rows.slice(0, past === -1 ? rows.length : Math.max(1, past)).map(({ outboxId }) => outboxId)
}

export interface RawRow {
  outboxId: string
  type: string
  key: string | null
  createdAt: string | null
  created: string | null
  raw: string | Buffer | null
  bytes: number | null
}

function toRecord(table: OutboxTable, bytesMax: number, { raw, bytes, ...row }: RawRow): OutboxRecord {
  const { encoding } = table.payload.kind === 'column' ? table.payload : { encoding: 'utf-8' }
  const { outboxId, type, createdAt, created } = row
  const { key, unreadable } = readKey(row.key)
  const payload =
    unreadable === null ? decodePayload({ raw, bytes }, encoding, bytesMax) : { payload: null, unreadable }
  return { outboxId, type, key, createdAt, created, ...payload }
}

/** The ledger's index on keys takes entries of up to 2,704 bytes. */
const keyBytesMax = 2_500

function readKey(key: string | null): { key: string | null; unreadable: string | null } {
  const bytes = key === null ? 0 : Buffer.byteLength(key)
  if (bytes <= keyBytesMax) return { key, unreadable: null }
  return { key: null, unreadable: `the key has ${bytes} bytes, more than the ${keyBytesMax} that a key may have` }
}

/** Decodes a row's payload, or says why it cannot be read, so that capture goes on with other rows. */
export function decodePayload(
  { raw, bytes }: Pick<RawRow, 'raw' | 'bytes'>,
  encoding: string,
  bytesMax: number,
): { payload: string | null; unreadable: string | null } {
  const unreadable = (why: string) => ({ payload: null, unreadable: why })
  if (bytes === null) return unreadable('the payload is missing: it is NULL in the outbox')
  if (bytes > bytesMax) return unreadable(payloadTooLargeMessage(bytes, bytesMax))
  const text = decode(raw ?? '', encoding)
  if (text === null) return unreadable(`the payload is not ${encoding}`)
  if (text.includes('\0')) return unreadable('the payload contains a NUL character, which JSON text cannot')
  return { payload: text, unreadable: null }
}

export const payloadTooLargeMessage = (bytes: number, bytesMax: number): string =>
  `the payload has ${bytes} bytes, more than the ${bytesMax} that PAYLOAD_MAX_BYTES allows`

function decode(raw: string | Buffer, encoding: string): string | null {
  if (encoding === 'base64' || encoding === 'hex') {
    const text = (typeof raw === 'string' ? raw : raw.toString('latin1')).replace(/\s+/g, '')
    return isBinaryText[encoding](text) ? decodeBytes(Buffer.from(text, encoding), 'utf-8') : null
  }
  return typeof raw === 'string' ? raw : decodeBytes(raw, encoding)
}

// Tests single characters, because a repeated group of four overflows the regular expression's stack at 4 MB.
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
