import type { Database } from '../postgres/database.ts'
import { isStatementCanceled } from '../postgres/sqlState.ts'
import type { RowExpressions } from './rowExpressions.ts'

/** A part of a table in the order of its ids. Short statements leave the database time for the ERP. */
export interface TableSlice {
  /** Null: the table's first row. */
  readonly after: string | null
  /** Null: the table's last row. */
  readonly upTo: string | null
}

export const sliceRowsMax = 10_000

/**
 * Selects the id that ends a slice. $1 is the slice's number of rows less one; $2 is the id before the slice, or null.
 */
export const sliceEndSql = ({ from, id, idText, idType }: RowExpressions): string =>
  `select ${idText} as id from ${from} where ($2::${idType} is null or ${id} > $2::${idType})
   order by ${id} offset $1 limit 1`

/**
 * The condition that a row is in the slice, to append to another condition.
 * @param firstParameter number of the parameter `after`; `upTo` is the next
 */
export const isInSliceSql = ({ id, idType }: RowExpressions, firstParameter: number): string =>
  ` and ($${firstParameter}::${idType} is null or ${id} > $${firstParameter}::${idType})
    and ($${firstParameter + 1}::${idType} is null or ${id} <= $${firstParameter + 1}::${idType})`

export async function readNextSliceBounds(
  db: Database,
  rows: RowExpressions,
  after: string | null,
  sliceRows: number,
): Promise<TableSlice> {
  const { rows: ends } = await db.query<{ id: string }>(sliceEndSql(rows), [sliceRows - 1, after])
  return { after, upTo: ends[0]?.id ?? null }
}

/** Returns null if Postgres canceled the read: without an index on the id, a slice needs a scan of the whole table. */
export async function nullIfCanceled<T>(read: () => Promise<T | null>): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    if (isStatementCanceled(error)) return null
    throw error
  }
}
