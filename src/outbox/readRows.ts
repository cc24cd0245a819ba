import type { ServedOutbox } from '../ledger/binding.ts'
import type { OutboxRecord } from '../model/outbox.ts'
import type { Database } from '../postgres/database.ts'
import { isInvalidValueError } from '../postgres/sqlState.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { anyRowOrSetBackSql } from './position.ts'

/** Reads a row in any state. If a query reads the row's content, use `readRecordWithContent`. */
export async function readRecordWithoutQueriedContent(outbox: Outbox, outboxId: string): Promise<OutboxRecord | null> {
  const { db, rows } = await outbox.open()
  const { from, record, id, idType } = rows
  try {
    const { rows: found } = await db.query<RawRow>(`select ${record} from ${from} where ${id} = $2::${idType}`, [
      outbox.bytesMax,
      outboxId,
    ])
    return found[0] ? toRecord(outbox, found[0]) : null
  } catch (error) {
    if (isInvalidValueError(error)) return null
    throw error
  }
}

export interface UncapturedRow {
  /** `done`: the row does not wait, or retention may have deleted its record. */
  place: 'before start' | 'left out by filter' | 'behind position' | 'done' | 'waits'
  /** The first waiting row of the key, which may be this row. Null if the row has no key, or does not wait. */
  firstOfKey: string | null
}

/** Finds out where a row without a record stands. @returns null if there is no such row */
export async function locateUncapturedRow(
  outbox: Outbox,
  { outboxId, key }: Pick<OutboxRecord, 'outboxId' | 'key'>,
): Promise<UncapturedRow | null> {
  return outbox.queryTable(async ({ db, rows: expressions }) => {
    const { from, begins, mayWait, filtered, waitsWithoutRecord, hasNoRecord, isAhead, uncaptured } = expressions
    const { rows } = await db.query<UncapturedRow>(
      `select case when not (true${begins}) then 'before start' when (${mayWait}) is not true then 'done'
           when (true${filtered}) is not true then 'left out by filter'
           when (${waitsWithoutRecord} and ${hasNoRecord}) is not true then 'done'
           when not (${isAhead}) then 'behind position' else 'waits' end as place,
         case when ${uncaptured} then (select ${expressions.idText} from ${from}
           where ${uncaptured} and ${expressions.key} = $2 order by ${expressions.order} limit 1) end as "firstOfKey"
       from ${from} where ${expressions.id} = $1::${expressions.idType}`,
      [outboxId, key],
    )
    return rows[0] ?? null
  })
}

/** $1 is the most bytes of a payload that are read, $2 the most rows. */
export const waitingRowsSql = ({ rows: { from, record, uncaptured, order } }: OpenTable): string =>
  `select ${record} from ${from} where ${uncaptured} order by ${order} limit $2`

/** Reads waiting rows in the order of capture, without locking them. */
export async function readWaitingRows(outbox: Outbox, limit: number): Promise<OutboxRecord[]> {
  return outbox.queryTable(async (table) => {
    const { rows } = await table.db.query<RawRow>(waitingRowsSql(table), [outbox.bytesMax, limit])
    return rows.map((row) => toRecord(outbox, row))
  })
}

export async function readFirstWaitingRowsThatFit(
  outbox: Outbox,
  limit: number,
): Promise<{ rows: OutboxRecord[]; isCut: boolean }> {
  return outbox.queryTable(async (table) => {
    const { from, uncaptured, idText, order } = table.rows
    const { rows: found } = await table.db.query<{ outboxId: string }>(
      `select ${idText} as "outboxId" from ${from} where ${uncaptured} order by ${order} limit $1`,
      [limit],
    )
    const outboxIds = found.map(({ outboxId }) => outboxId)
    const rows = await readWaitingRowsThatFit(outbox, table.db, table, outboxIds)
    return { rows, isCut: outboxIds.length === limit || rows.length < outboxIds.length }
  })
}

/** Costs little. */
export function mayHaveWaitingRows(outbox: Outbox, served?: ServedOutbox): Promise<boolean> {
  return outbox.queryTable(async (table) => {
    const { rowCount } = await table.db.query(anyWorkSql(table))
    return (rowCount ?? 0) > 0
  }, served)
}

/** Finds out, at little cost, whether the daemon has to look at the table's rows. */
function anyWorkSql(table: OpenTable): string {
  const { from, waits, needsWork } = table.rows
  if (table.form === 'append-only') return anyRowOrSetBackSql(table)
  return `select from ${from} where ${table.form === 'marked' ? waits : needsWork} limit 1`
}

/** The most bytes of payloads in memory at once. Mapping and writing take a few times as much. */
export const batchBytesMax = 16_000_000

/** Reads the first rows: up to `batchBytesMax` bytes, and at least one. */
export async function readWaitingRowsThatFit(
  outbox: Outbox,
  db: Database,
  { rows: { from, record, payload, waits, id, idType, idText, order } }: OpenTable,
  outboxIds: readonly string[],
): Promise<OutboxRecord[]> {
  if (outboxIds.length === 0) return []
  const waiting = (ids: string) => `${id} = any(${ids}::${idType}[]) and ${waits} order by ${order}`
  const { rows } = await db.query<{ outboxId: string; bytes: number | null }>(
    `select ${idText} as "outboxId", octet_length(${payload}) as bytes from ${from} where ${waiting('$1')}`,
    [outboxIds],
  )
  const read = await db.query<RawRow>(`select ${record} from ${from} where ${waiting('$2')}`, [
    outbox.bytesMax,
    firstThatFit(rows, outbox.bytesMax),
  ])
  return read.rows.map((row) => toRecord(outbox, row))
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

function toRecord({ described, bytesMax }: Outbox, { raw, bytes, ...row }: RawRow): OutboxRecord {
  const { encoding } = described.payload.kind === 'column' ? described.payload : { encoding: 'utf-8' }
  const { outboxId, type, createdAt, created } = row
  const { key, unreadable } = readKey(row.key)
  const payload =
    unreadable === null ? decodePayload({ raw, bytes }, encoding, bytesMax) : { payload: null, unreadable }
  return { outboxId, type, key, createdAt, created, ...payload }
}

/** The ledger's index on keys takes entries of up to 2,704 bytes. */
const keyBytesMax = 2_500

/** Returns no key if it is too long. */
export function readKey(key: string | null): { key: string | null; unreadable: string | null } {
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
