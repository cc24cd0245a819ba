import { type DatedRow, findCapturedRows, type SeenRow } from './capturedRows.ts'
import { readRowsThatDoNotFail } from './failingRows.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { readLostRows, transactionIdInRowSql } from './rowsUnderWay.ts'
import { isInSliceSql, readNextSliceBounds, sliceRowsMax, type TableSlice } from './slices.ts'

export interface RowWithoutRecord {
  outboxId: string
  /** True if the row's state says that it was captured. */
  isMarked: boolean
  /** Null if the row names none. */
  transactionId: string | null
}

/** Finds the rows that wait, or that are marked as under way, and are not in the ledger. Reads the whole table. */
export async function findRowsWithoutRecord(outbox: Outbox): Promise<RowWithoutRecord[]> {
  const found: RowWithoutRecord[] = []
  for (let after: string | null = null; ; ) {
    const table = await outbox.open()
    const slice = await readNextSliceBounds(table.db, table.rows, after, sliceRowsMax)
    const lost = await readLostRows(outbox, table, slice)
    found.push(...lost.map(({ outboxId, transactionId }) => ({ outboxId, transactionId, isMarked: true })))
    const waiting = await outbox.queryTable((asked) => readWaitingRows(outbox, asked, slice))
    found.push(...waiting.map((row) => ({ ...row, isMarked: false })))
    after = slice.upTo
    if (after === null) return found
  }
}

async function readWaitingRows(
  { ledger }: Outbox,
  { db, table, shape, rows: expressions }: OpenTable,
  { after, upTo }: TableSlice,
): Promise<Omit<RowWithoutRecord, 'isMarked'>[]> {
  const { from, waitsWithoutRecord, seen, id } = expressions
  const { rows } = await db.query<DatedRow & { transactionId: string | null }>(
    `select ${seen}, ${transactionIdInRowSql(table, shape)} as "transactionId" from ${from}
     where ${waitsWithoutRecord}${isInSliceSql(expressions, 1)} order by ${id}`,
    [after, upTo],
  )
  const { known } = await findCapturedRows(ledger, rows)
  return rows.filter(({ outboxId }) => !known.has(outboxId))
}

/** Reads the transactions that rows name, whatever their state. @returns by row id */
export async function readTransactionsNamedInRows(
  outbox: Outbox,
  outboxIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { db, table, shape, rows: expressions } = await outbox.open()
  const { from, id, idType, idText, created } = expressions
  const transaction = transactionIdInRowSql(table, shape)
  // Ids that do not fit the column's type are those of no row.
  const rows = await readRowsThatDoNotFail<SeenRow & { transactionId: string }>(
    db,
    `select ${idText} as "outboxId", ${created} as created, ${transaction} as "transactionId"
     from ${from} where ${id} = any($1::${idType}[]) and ${transaction} is not null`,
    outboxIds,
  )
  const { conflicts } = await findCapturedRows(outbox.ledger, rows)
  const others = new Set(conflicts.map(({ outboxId }) => outboxId))
  return new Map(
    rows.flatMap(({ outboxId, transactionId }) => (others.has(outboxId) ? [] : [[outboxId, transactionId]])),
  )
}
