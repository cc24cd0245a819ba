import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import type { RowExpressions } from './rowExpressions.ts'

/** A part of a table in the order of its ids. Short statements leave the database time for the ERP. */
export interface TableSlice {
  /** Null: the table's first row. */
  readonly after: string | null
  /** Null: the table's last row. */
  readonly upTo: string | null
}

export const sliceRowsMax = 10_000

/** Goes through the whole table. */
export async function* readSlices(outbox: Outbox): AsyncGenerator<TableSlice> {
  for (let after: string | null = null; ; ) {
    const slice: TableSlice = await readSliceAfter(await outbox.open(), after, sliceRowsMax)
    yield slice
    if (slice.upTo === null) return
    after = slice.upTo
  }
}

export async function readSliceAfter(
  { db, rows: { from, id, idText, idType } }: OpenTable,
  after: string | null,
  sliceRows: number,
): Promise<TableSlice> {
  const { rows } = await db.query<{ id: string }>(
    `select ${idText} as id from ${from} where ($2::${idType} is null or ${id} > $2::${idType})
     order by ${id} offset $1 limit 1`,
    [sliceRows - 1, after],
  )
  return { after, upTo: rows[0]?.id ?? null }
}

/** The condition that a row is in the slice whose `after` is $1 and whose `upTo` is $2, to append to another condition. */
export const isInSliceSql = ({ id, idType }: RowExpressions): string =>
  ` and ($1::${idType} is null or ${id} > $1::${idType}) and ($2::${idType} is null or ${id} <= $2::${idType})`
