import type { ServedOutbox } from '../ledger/servedOutbox.ts'
import type { OutboxRecord } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { isNoValueOfType } from '../postgres/sqlState.ts'
import { cutIdSql } from './chooseInLine.ts'
import type { SeenRow } from './ledgerMemory.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { type RawRow, toRecord } from './toRecord.ts'

/** How rows are read, by name; those with a payload take the most bytes of it as $1. */
export function readStatements({ rows }: OpenTable) {
  const { from, waits, mayWait, record, seen, id, idType, idText, order } = rows
  const waitingOf = (parameter: number) => `${id} = any($${parameter}::${idType}[]) and ${waits} order by ${order}`
  return {
    /** Sizes of the payloads of the ids in $1, of rows that wait. */
    sizes: `select ${idText} as "outboxId", octet_length(${rows.payload}) as bytes from ${from} where ${waitingOf(1)}`,
    byIds: `select ${record} from ${from} where ${waitingOf(2)}`,
    byId: `select ${record} from ${from} where ${id} = $2::${idType}`,
    waiting: `select ${record} from ${from} where ${waits} order by ${order} limit $2`,
    waitsById: `select from ${from} where ${mayWait} and ${id} = $1::${idType}`,
    any: `select from ${from} where ${waits} limit 1`,
    /** Rows of the ids in $1, whether or not they wait. */
    look: `select ${seen} from ${from} where ${id} = any($1::${idType}[])`,
    /** The same if one of them is no value of the id's type: slower, because it has no index. */
    lookByText: `select ${seen} from ${from} where ${cutIdSql(idText)} = any($1::text[])`,
  }
}

/** Reads the row as it is now, whatever its state; null if there is none of that id. */
export async function readRecord(outbox: Outbox, outboxId: string): Promise<OutboxRecord | null> {
  const table = await outbox.open()
  try {
    const { rows } = await table.db.query<RawRow>(readStatements(table).byId, [outbox.bytesMax, outboxId])
    return rows[0] ? toRecord(outbox.described, outbox.bytesMax, rows[0]) : null
  } catch (error) {
    if (isNoValueOfType(error)) return null
    throw error
  }
}

/** Returns whether the row of this id says that it waits; true of a table whose rows never say it. */
export async function saysThatItWaits(outbox: Outbox, outboxId: string): Promise<boolean> {
  const table = await outbox.open()
  return ((await table.db.query(readStatements(table).waitsById, [outboxId])).rowCount ?? 0) > 0
}

/** Reads the rows that wait, in the order in which they would be claimed; locks and changes nothing. */
export async function readNew(outbox: Outbox, limit: number): Promise<OutboxRecord[]> {
  const { described, bytesMax } = outbox
  return outbox.ask(async (table) => {
    const sql = readStatements(table)
    const read = async (statement: string, value: unknown) => {
      const { rows } = await table.db.query<RawRow>(statement, [bytesMax, value])
      return rows.map((row) => toRecord(described, bytesMax, row))
    }
    if (table.scan === null) return read(sql.waiting, limit)
    const skipped = outbox.unfilterable.ids().map((outboxId) => ({ outboxId, isCaptured: false }))
    const { outboxIds } = await table.scan.findUnknown({ ...everything, limit, skipped })
    return read(sql.byIds, outboxIds)
  })
}

/** Leaves nothing where it is. */
const everything = {
  lineMax: Number.POSITIVE_INFINITY,
  exceptKeys: [],
  types: { known: [], elsewhere: [] },
}

/** Returns whether any row waits, or may; cheap. @param served what the ledger has just said */
export function hasNew(outbox: Outbox, served?: ServedOutbox): Promise<boolean> {
  return outbox.ask(async (table) => {
    if (table.scan !== null) return table.scan.hasUnknown()
    const { rowCount } = await table.db.query(readStatements(table).any)
    return (rowCount ?? 0) > 0
  }, served)
}

/** Reads the rows of these ids that are there, whether or not they wait. */
export async function lookAt(table: OpenTable, outboxIds: readonly string[]): Promise<SeenRow[]> {
  const { db } = table
  const { look, lookByText } = readStatements(table)
  const { rows } = await db.query<SeenRow>(look, [outboxIds]).catch((error: unknown) => {
    if (!isNoValueOfType(error)) throw error
    return db.query<SeenRow>(lookByText, [outboxIds])
  })
  return rows
}

/** Finds those of these ids that are in the table, whatever their rows say. */
export async function findPresent(outbox: Outbox, outboxIds: readonly string[]): Promise<ReadonlySet<string>> {
  return new Set((await lookAt(await outbox.open(), outboxIds)).map(({ outboxId }) => outboxId))
}

/** Bytes of payloads that are held in memory at once; a few times as much while they are mapped and written. */
export const batchBytesMax = 16_000_000

/** Reads the first of these rows that wait: as many as `batchBytesMax` holds, and always one. */
export async function readFirst(
  { described, bytesMax }: Outbox,
  db: Database,
  table: OpenTable,
  outboxIds: readonly string[],
): Promise<OutboxRecord[]> {
  if (outboxIds.length === 0) return []
  const { sizes, byIds } = readStatements(table)
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
