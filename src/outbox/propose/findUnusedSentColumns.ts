import type pg from 'pg'

import { resolveTable } from '../inspectTable.ts'
import { type OutboxTable, qualifiedName } from '../outboxTable.ts'
import { readCatalogTable } from './catalogTable.ts'
import { findSentColumns } from './findSentColumns.ts'
import { readAllWords, wordsOf } from './readAllWords.ts'

/**
 * Columns that may say that a row was sent, of a table that is read as if none did: what another program has sent would be sent
 * again. None where the description has a state, nor those that its filter names.
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
