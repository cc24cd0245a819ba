import type pg from 'pg'
import { type Database, isTransient } from '../../postgres/database.ts'
import { isStatementCanceled } from '../../postgres/sqlState.ts'
import { resolveTable } from '../inspectTable.ts'
import { type OutboxTable, qualifiedName } from '../outboxTable.ts'
import { type CatalogTable, readCatalogTable, readWords } from './catalogTable.ts'
import { findSentColumns, type WordsOf } from './findSentColumns.ts'
import { findWordColumns } from './proposeOutbox.ts'

/** The words of each column; null if there are many. Columns that could not be read are missing. */
export type Words = Map<string, readonly string[] | null>

export async function readAllWords(db: Database, table: CatalogTable, warnings: string[]): Promise<Words> {
  const words: Words = new Map()
  for (const column of findWordColumns(table)) {
    const isReadable = table.columns.find(({ name }) => name === column)?.isReadable
    if (!isReadable) continue
    const found = await readSeenRows(`what "${column}" holds`, warnings, () => readWords(db, table, column))
    if (found !== undefined) words.set(column, found)
  }
  return words
}

export const createWordLookup =
  (words: Words): WordsOf =>
  (column) => {
    const found = words.get(column)
    return found === undefined ? [] : found
  }

/** Returns nothing for a view that fails or is too slow, so that the proposal goes on. */
export async function readSeenRows<T>(
  what: string,
  warnings: string[],
  look: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await look()
  } catch (error) {
    // A canceled statement was too slow, but not locked: a lock would have ended it sooner (55P03).
    if (isTransient(error) && !isStatementCanceled(error)) throw error
    warnings.push(`${what} could not be read: ${(error as Error).message}`)
    return undefined
  }
}

/** Finds columns that may say that a row was sent, if neither the description's state nor its filter uses one. */
export async function findUnusedSentColumns(pool: pg.Pool, described: OutboxTable): Promise<string[]> {
  if (described.state !== null) return []
  const table = await readCatalogTable(pool, qualifiedName(await resolveTable(pool, described)))
  if (table === null) return []
  const words = await readAllWords(pool, table, [])
  const { filter } = described
  return findSentColumns(table.columns, createWordLookup(words))
    .map(({ name }) => name)
    .filter((name) => filter === null || !filter.toLowerCase().includes(name.toLowerCase()))
}
