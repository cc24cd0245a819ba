import { endStates } from '../model/submission.ts'
import { columnTextSql, literalListSql, prefixedColumnSql } from './columns.ts'
import { readRowsThatDoNotFail } from './failingRows.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { notBeforeStartSql } from './rowExpressions.ts'
import { isInSliceSql, readSlices, type TableSlice } from './slices.ts'
import { stateExpressions } from './stateForms.ts'
import { writeBackAssignments } from './writeBack.ts'

/** A row that waits, or that is marked as captured, and is missing from the ledger, which was restored without it. */
export interface RowWithoutRecord {
  outboxId: string
  /** True if the row's state says that it was captured. */
  isMarked: boolean
  /** Null if the row names none. */
  transactionId: string | null
}

type FoundRow = Omit<RowWithoutRecord, 'isMarked'>

/** Reads the whole table. */
export async function findRowsWithoutRecord(outbox: Outbox): Promise<RowWithoutRecord[]> {
  const found: RowWithoutRecord[] = []
  for await (const slice of readSlices(outbox)) {
    const table = await outbox.open()
    const underWay = underWaySql(table)
    // Does not compute the filter, because it may fail for a row's contents.
    const marked = underWay === null ? [] : await readUnknownRows(table, slice, `${underWay}${table.rows.begins}`)
    const waiting = await outbox.queryTable((table) => readUnknownRows(table, slice, table.rows.waitsWithoutRecord))
    found.push(
      ...(await leaveOutOthers(table, marked)).map((row) => ({ ...row, isMarked: true })),
      ...waiting.map((row) => ({ ...row, isMarked: false })),
    )
  }
  return found
}

async function readUnknownRows(
  table: OpenTable,
  { after, upTo }: TableSlice,
  conditionSql: string,
): Promise<FoundRow[]> {
  const { from, isUnknown, id, idText } = table.rows
  const { rows } = await table.db.query<FoundRow>(
    `select ${idText} as "outboxId", ${transactionIdInRowSql(table)} as "transactionId" from ${from}
     where ${conditionSql} and ${isUnknown}${isInSliceSql(table.rows)} order by ${id}`,
    [after, upTo],
  )
  return rows
}

/**
 * The condition that a row says that it was captured, but not that its record has ended; null if rows do not show this.
 * If one value means both "under way" and "done", counts only rows recorded after those whose records retention may
 * have deleted.
 */
function underWaySql({ table, shape, served }: OpenTable): string | null {
  const since = { id: null, at: new Date(served.sinceMs).toISOString() }
  return stateExpressions(table.state)?.underWaySql(table.createdAt && notBeforeStartSql(table, shape, since)) ?? null
}

/** Leaves out rows that the filter excludes, or for which it fails, because they may belong to a different program. */
async function leaveOutOthers({ db, rows }: OpenTable, found: FoundRow[]): Promise<FoundRow[]> {
  const { from, id, idType, idText, filtered } = rows
  if (filtered === '') return found
  const ours = await readRowsThatDoNotFail<{ outboxId: string }>(
    db,
    `select ${idText} as "outboxId" from ${from} where ${id} = any($1::${idType}[])${filtered}`,
    found.map(({ outboxId }) => outboxId),
  )
  const ids = new Set(ours.map(({ outboxId }) => outboxId))
  return found.filter(({ outboxId }) => ids.has(outboxId))
}

/**
 * Makes reports due for ended records whose rows say that they are under way, because a restored ledger may have lost
 * that this was due. Does nothing if rows cannot show each end: then a row that was written looks the same.
 */
export async function makeStaleReportsDue(outbox: Outbox): Promise<void> {
  for await (const { after, upTo } of readSlices(outbox)) {
    const table = await outbox.open()
    const { from, idText, created } = table.rows
    const form = stateExpressions(table.table.state)
    const written = writeBackAssignments(table.table, table.shape).find(({ column }) => column === form?.column)
    const underWay = underWaySql(table)
    if (underWay === null || written === undefined || !form?.hasEndValues) return
    await table.db.query(
      `with stale as (
         select r.id from ${from} cross join lateral (
           select s.id, s.state from outboxd.submission s
           where s.outbox_id = ${idText} collate "C" and not s.report_due and s.row_created is not distinct from ${created}
             and s.state in (${literalListSql(endStates)})
         ) r where ${underWay}${isInSliceSql(table.rows)} and ${written.castValueSql} is distinct from ${prefixedColumnSql(written.column)}
       ) update outboxd.submission s set report_due = true from stale where s.id = stale.id`,
      [after, upTo],
    )
  }
}

function transactionIdInRowSql({ table, shape }: OpenTable): string {
  const texts = table.write
    .filter(({ what }) => what === 'transaction_id')
    .map(({ column: name }) => `nullif(btrim(${columnTextSql(name, shape)}), '')`)
  return texts.length === 0 ? 'null::text' : `coalesce(${texts})`
}

/** Reads the transactions that the rows of these records name, whatever their state. @returns by row id */
export async function readTransactionsNamedInRows(
  outbox: Outbox,
  outboxIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const table = await outbox.open()
  const { from, id, idType, idText, isOtherRow } = table.rows
  const transaction = transactionIdInRowSql(table)
  // Ids that do not fit the column's type are those of no row.
  const rows = await readRowsThatDoNotFail<{ outboxId: string; transactionId: string }>(
    table.db,
    `select ${idText} as "outboxId", ${transaction} as "transactionId" from ${from}
     where ${id} = any($1::${idType}[]) and ${transaction} is not null and ${isOtherRow} is not true`,
    outboxIds,
  )
  return new Map(rows.map(({ outboxId, transactionId }) => [outboxId, transactionId]))
}
