import type pg from 'pg'
import { type Database, isTransient } from '../../postgres/database.ts'
import { isStatementCanceled } from '../../postgres/sqlState.ts'
import { resolveTable } from '../inspectTable.ts'
import { type OutboxTable, qualifiedName } from '../outboxTable.ts'
import { type CatalogTable, readCatalogTable, readWords } from './catalogTable.ts'
import { findSentColumns, type WordsOf } from './findSentColumns.ts'
import { findWordColumns } from './proposeOutbox.ts'

/** By column; null if there are many. What could not be looked at is not there. */
export type Words = Map<string, readonly string[] | null>

/** Reads what stands in the columns that a proposal depends on. @param warnings takes what could not be looked at */
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

/** For a proposal: of what could not be looked at, none are known. */
export const wordsOf =
  (words: Words): WordsOf =>
  (column) => {
    const found = words.get(column)
    return found === undefined ? [] : found
  }

/** What cannot be looked at (a view that fails, or takes too long) is not known: that is no reason to propose nothing. */
export async function readSeenRows<T>(
  what: string,
  warnings: string[],
  look: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await look()
  } catch (error) {
    // What took too long is passed over: it was no lock, which would have ended it sooner (55P03).
    if (isTransient(error) && !isStatementCanceled(error)) throw error
    warnings.push(`${what} could not be looked at: ${(error as Error).message}`)
    return undefined
  }
}

/**
 * Columns that may say that a row was sent, of a table that is read as if none did: what another program has sent would be sent
 * again. None if the description has a state, nor those that its filter names.
 */
export async function findUnusedSentColumns(pool: pg.Pool, described: OutboxTable): Promise<string[]> {
  if (described.state !== null) return []
  const table = await readCatalogTable(pool, qualifiedName(await resolveTable(pool, described)))
  if (table === null) return []
  const words = await readAllWords(pool, table, [])
  const { filter } = described
  return findSentColumns(table.columns, wordsOf(words))
    .map(({ name }) => name)
    .filter((name) => filter === null || !filter.toLowerCase().includes(name.toLowerCase()))
}
