import type pg from 'pg'
import { type Database, isTransientError } from '../../postgres/database.ts'
import { isStatementCanceled } from '../../postgres/sqlState.ts'
import { type OutboxTable, qualifiedName } from '../outboxTable.ts'
import { resolveTableSchema } from '../readTableShape.ts'
import { type CatalogTable, readCatalogTable, readDistinctValues } from './catalogTable.ts'
import { findSentColumnCandidates, type ValuesOfColumn } from './findSentColumnCandidates.ts'
import { findColumnsToReadValuesOf } from './proposeOutboxFile.ts'

/** The words of each column; null if there are many. Columns that could not be read are missing. */
export type ValuesByColumn = Map<string, readonly string[] | null>

export async function readValuesByColumn(
  db: Database,
  table: CatalogTable,
  warnings: string[],
): Promise<ValuesByColumn> {
  const words: ValuesByColumn = new Map()
  for (const column of findColumnsToReadValuesOf(table)) {
    const isReadable = table.columns.find(({ name }) => name === column)?.isReadable
    if (!isReadable) continue
    const found = await readOrWarn(`what "${column}" holds`, warnings, () => readDistinctValues(db, table, column))
    if (found !== undefined) words.set(column, found)
  }
  return words
}

export const createValuesLookup =
  (words: ValuesByColumn): ValuesOfColumn =>
  (column) => {
    const found = words.get(column)
    return found === undefined ? [] : found
  }

/** Returns nothing for a view that fails or is too slow, so that the proposal goes on. */
export async function readOrWarn<T>(what: string, warnings: string[], look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look()
  } catch (error) {
    // A canceled statement was too slow, but not locked: a lock would have ended it sooner (55P03).
    if (isTransientError(error) && !isStatementCanceled(error)) throw error
    warnings.push(`${what} could not be read: ${(error as Error).message}`)
    return undefined
  }
}

/** Finds columns that may say that a row was sent, if neither the description's state nor its filter uses one. */
export async function findUndescribedSentColumns(pool: pg.Pool, described: OutboxTable): Promise<string[]> {
  if (described.state !== null) return []
  const table = await readCatalogTable(pool, qualifiedName(await resolveTableSchema(pool, described)))
  if (table === null) return []
  const words = await readValuesByColumn(pool, table, [])
  const { filter } = described
  return findSentColumnCandidates(table.columns, createValuesLookup(words))
    .map(({ name }) => name)
    .filter((name) => filter === null || !filter.toLowerCase().includes(name.toLowerCase()))
}
