import type pg from 'pg'
import { boundText } from '../boundText.ts'
import type { ClaimedRows, OutboxRecord, RowStatus } from '../model.ts'
import { begin, type Database } from '../postgres/database.ts'
import { idsOf } from './idsOf.ts'
import type { OpenTable } from './openTable.ts'
import { type ReadRow, readFirstRows } from './readRows.ts'

/** How rows are read. */
export interface RowReader {
  pool: pg.Pool
  /** Larger payloads are not read. */
  bytesMost: number
  toRecord(row: ReadRow): OutboxRecord
}

/** Rows that the ledger alone remembers as taken. */
export function rememberedRows(
  reader: RowReader,
  from: OpenTable,
  { outboxIds, leftTypes }: { outboxIds: string[]; leftTypes: string[] },
): ClaimedRows {
  return {
    outboxIds,
    leftTypes,
    isRemembered: true,
    read: () => readFirst(reader, reader.pool, from, outboxIds),
    // Nobody has these rows in hand: they may be told more by now than that they were taken.
    mark: async (statuses) => idsOf(toWrite(from, statuses)),
    async [Symbol.asyncDispose]() {},
  }
}

/** Rows that a transaction has locked, which ends as they are marked or let go. */
export async function heldRows(
  reader: RowReader,
  from: OpenTable,
  lock: (db: Database) => Promise<{ outboxIds: string[]; leftTypes: string[] }>,
): Promise<ClaimedRows> {
  const transaction = await begin(reader.pool)
  try {
    const { outboxIds, leftTypes } = await lock(transaction.db)
    return {
      outboxIds,
      leftTypes,
      isRemembered: false,
      read: () => readFirst(reader, transaction.db, from, outboxIds),
      async mark(statuses) {
        const unmarked = await mark(transaction.db, from, statuses)
        await transaction.commit()
        return unmarked
      },
      [Symbol.asyncDispose]: () => transaction[Symbol.asyncDispose](),
    }
  } catch (error) {
    await transaction[Symbol.asyncDispose]()
    throw error
  }
}

async function readFirst({ bytesMost, toRecord }: RowReader, db: Database, { sql }: OpenTable, ids: readonly string[]) {
  return (await readFirstRows(db, sql, ids, bytesMost)).map(toRecord)
}

/** Those that change something in the table. */
function toWrite({ writing }: OpenTable, statuses: readonly RowStatus[]): RowStatus[] {
  return statuses.filter(({ state }) => writing?.states.has(state))
}

/** @returns the ids of rows that still say that they wait */
async function mark(db: Database, from: OpenTable, statuses: readonly RowStatus[]): Promise<string[]> {
  const meant = toWrite(from, statuses)
  if (from.writing === null || meant.length === 0) return []
  const storable = meant.map((status) => ({ ...status, error: status.error && boundText(status.error) }))
  const { rows } = await db.query<{ outboxId: string; written: boolean }>(from.writing.mark, [JSON.stringify(storable)])
  const written = new Set(rows.flatMap(({ outboxId, written }) => (written ? [outboxId] : [])))
  return idsOf(meant).filter((id) => !written.has(id))
}
