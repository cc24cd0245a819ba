import { endStates } from '../model/submission.ts'
import type { Database } from '../postgres/database.ts'
import { type DatedRow, findCapturedRows, type SeenRow } from './capturedRows.ts'
import { columnTextSql, literalListSql, prefixedColumnSql, type TableShape } from './columns.ts'
import { readRowsThatDoNotFail } from './failingRows.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import type { OutboxTable } from './outboxTable.ts'
import { notBeforeStartSql } from './rowExpressions.ts'
import { isInSliceSql, readNextSliceBounds, sliceRowsMax, type TableSlice } from './slices.ts'
import { stateExpressions } from './stateForms.ts'
import { writeBackAssignments } from './writeBack.ts'

/** A row whose state says that it was captured, but not that its record has ended. */
export interface RowUnderWay extends DatedRow {
  stateText: string
  transactionId: string | null
}

/**
 * If one value means both "under way" and "done", counts only rows recorded after those whose records retention may
 * have deleted.
 */
export function rowsUnderWayStatements({ table, shape, rows, served }: OpenTable) {
  const { state } = table
  const form = stateExpressions(state)
  const written = writeBackAssignments(table, shape).find(({ column }) => column === state?.column)
  const { from, id, seen, idType, idText, filtered } = rows
  const since =
    table.createdAt && notBeforeStartSql(table, shape, { id: null, at: new Date(served.sinceMs).toISOString() })
  const underWay = form?.underWaySql(since) ?? null
  const transaction = transactionIdInRowSql(table, shape)
  const stateText = state ? `coalesce(${prefixedColumnSql(state.column)}::text, 'that it waits')` : `'that it waits'`
  return {
    /** The condition that a row is under way; null if rows do not show this. */
    underWay,
    /** Does not compute the filter, because it may fail for a row's contents. */
    rowsSql: (condition: string) => `select ${seen}, ${stateText} as "stateText", ${transaction} as "transactionId"
        from ${from} where ${condition}${notBeforeStartSql(table, shape, served.start)}${isInSliceSql(rows, 1)} order by ${id}`,
    /**
     * Makes reports due for ended records whose rows say that they are under way. Null if rows cannot show each end:
     * then a row that was written looks the same.
     */
    reportAgain:
      underWay === null || written === undefined || !form?.hasEndValues
        ? null
        : `with stale as (
             select r.id from ${from} cross join lateral (
               select s.id, s.state from outboxd.submission s
               where s.outbox_id = ${idText} and not s.report_due and s.row_created is not distinct from ${rows.created}
                 and s.state in (${literalListSql(endStates)})
             ) r where ${underWay}${isInSliceSql(rows, 1)} and ${written.castValueSql} is distinct from ${prefixedColumnSql(written.column)}
           ) update outboxd.submission s set report_due = true from stale where s.id = stale.id`,
    /** Selects the ids in $1 that the filter includes; null without a filter. */
    filtered:
      filtered === ''
        ? null
        : `select ${idText} as "outboxId" from ${from} where ${id} = any($1::${idType}[])${filtered}`,
  }
}

export interface LostRows {
  rows: readonly RowUnderWay[]
  /** True if the search stopped before the table's end. */
  isCut: boolean
}

/** Bounds the memory. */
const lostRowsMax = 100_000

/** Finds rows that are marked as captured but missing from the ledger, which was restored without them. */
export async function findLostRows(outbox: Outbox, goOn: () => boolean): Promise<LostRows> {
  const rows: RowUnderWay[] = []
  for (let after: string | null = null; ; ) {
    const table = await outbox.open()
    const slice = await readNextSliceBounds(table.db, table.rows, after, sliceRowsMax)
    rows.push(...(await readLostRows(outbox, table, slice)))
    after = slice.upTo
    if (after === null || rows.length >= lostRowsMax || !goOn()) return { rows, isCut: after !== null }
  }
}

/**
 * Makes reports due for ended records whose rows say that they are under way, because a restored ledger may have lost
 * that this was due.
 *
 * @returns the number of records
 */
export async function makeStaleReportsDue(outbox: Outbox, goOn: () => boolean = () => true): Promise<number> {
  let due = 0
  for (let after: string | null = null; ; ) {
    const table = await outbox.open()
    const { reportAgain } = rowsUnderWayStatements(table)
    if (reportAgain === null) return due
    const slice = await readNextSliceBounds(table.db, table.rows, after, sliceRowsMax)
    due += (await table.db.query(reportAgain, [slice.after, slice.upTo])).rowCount ?? 0
    after = slice.upTo
    if (after === null || !goOn()) return due
  }
}

async function readLostRows({ ledger }: Outbox, table: OpenTable, { after, upTo }: TableSlice): Promise<RowUnderWay[]> {
  const { underWay, rowsSql, filtered } = rowsUnderWayStatements(table)
  if (underWay === null) return []
  const { rows } = await table.db.query<RowUnderWay>(rowsSql(underWay), [after, upTo])
  const { known } = await findCapturedRows(ledger, rows)
  return leaveOutOthers(
    table.db,
    filtered,
    rows.filter(({ outboxId }) => !known.has(outboxId)),
  )
}

export function lostRowsMessage({ rows, isCut }: LostRows): string {
  const [oldest] = rows.flatMap(({ createdAt }) => createdAt ?? []).sort()
  const many = `${rows.length}${isCut ? ' or more' : ''}`
  return `${many} rows are marked as captured but are missing from the ledger, so they are never sent. The first is ${rows[0]?.outboxId}${oldest ? `, the oldest was created ${oldest}` : ''}. \`outboxd recover --dry-run\` counts them`
}

/**
 * Leaves out rows that the filter excludes, or for which the filter fails, because such rows may belong to a different
 * program.
 */
async function leaveOutOthers(
  db: Database,
  filteredSql: string | null,
  rows: readonly RowUnderWay[],
): Promise<RowUnderWay[]> {
  if (filteredSql === null) return [...rows]
  const ids = rows.map(({ outboxId }) => outboxId)
  const found = await readRowsThatDoNotFail<{ outboxId: string }>(db, filteredSql, ids)
  const ours = new Set(found.map(({ outboxId }) => outboxId))
  return rows.filter(({ outboxId }) => ours.has(outboxId))
}

function transactionIdInRowSql({ write }: OutboxTable, shape: TableShape): string {
  const texts = write
    .filter(({ what }) => what === 'transaction_id')
    .map(({ column: name }) => `nullif(btrim(${columnTextSql(name, shape)}), '')`)
  return texts.length === 0 ? 'null::text' : `coalesce(${texts})`
}

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
