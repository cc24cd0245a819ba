import { type Database, isPassing } from '../../postgres/database.ts'
import { wasCanceled } from '../../postgres/sqlState.ts'
import { type CatalogTable, readWords } from './catalogTable.ts'
import type { WordsOf } from './findSentColumns.ts'
import { findWordColumns } from './proposeOutbox.ts'

/** By column; null where there are many. What could not be looked at is not there. */
export type Words = Map<string, readonly string[] | null>

/** Reads what stands in the columns that a proposal depends on. @param warnings takes what could not be looked at */
export async function readAllWords(db: Database, table: CatalogTable, warnings: string[]): Promise<Words> {
  const words: Words = new Map()
  for (const column of findWordColumns(table)) {
    const isReadable = table.columns.find(({ name }) => name === column)?.isReadable
    if (!isReadable) continue
    const found = await lookAt(`what "${column}" holds`, warnings, () => readWords(db, table, column))
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
export async function lookAt<T>(what: string, warnings: string[], look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look()
  } catch (error) {
    // What took too long is passed over: it was no lock, which would have ended it sooner (55P03).
    if (isPassing(error) && !wasCanceled(error)) throw error
    warnings.push(`${what} could not be looked at: ${(error as Error).message}`)
    return undefined
  }
}
