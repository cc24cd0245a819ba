import { readReportedStatesNeedingAttention } from '../ledger/reports.ts'
import type { Database } from '../postgres/database.ts'
import { columnTextSql, prefixedColumnSql, type TableShape } from './columns.ts'
import { readRowsThatDoNotFail } from './failingRows.ts'
import type { DatedRow } from './ledgerMemory.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import type { OutboxTable } from './outboxTable.ts'
import { notBeforeStartSql } from './rowExpressions.ts'
import { isInSliceSql, type TableSlice } from './slices.ts'
import { stateExpressions } from './stateForms.ts'
import { rowStatusesSql, writeBackAssignments } from './writeBackStatements.ts'

/** A row whose state says that it was captured, but not that its record has ended. */
export interface RowUnderWay extends DatedRow {
  stateText: string
  transactionId: string | null
}

/**
 * If one value means both "under way" and "done", counts only rows recorded since the ledger serves the table. A
 * different program may have handled older rows.
 */
export function rowsUnderWayStatements({ table, shape, rows, served }: OpenTable) {
  const { state } = table
  const { from, id, seen, mayWait, idType, idText, filtered } = rows
  const form = stateExpressions(state)
  const since =
    table.createdAt && notBeforeStartSql(table, shape, { id: null, at: new Date(served.sinceMs).toISOString() })
  const underWay = form?.underWaySql(since) ?? null
  const transaction = transactionIdInRowSql(table, shape)
  const named = table.write.some(({ what }) => what === 'transaction_id')
    ? `(${mayWait}) and ${transaction} is not null`
    : null
  const written = writeBackAssignments(table, shape).find(({ column }) => column === state?.column)
  const either = [underWay, named].filter((condition) => condition !== null)
  const stateText = state ? `coalesce(${prefixedColumnSql(state.column)}::text, 'that it waits')` : `'that it waits'`
  return {
    /** True if completed and discarded have values of their own: then a row under way does not show an end. */
    hasEndValues: form?.hasEndValues ?? false,
    /** The condition that a row is under way; null if rows do not show this. */
    underWay,
    /** Includes waiting rows that contain a transaction id, because the ledger may have lost their records. */
    underWayOrNamed: either.length === 0 ? null : `(${either.join(' or ')})`,
    /** Does not compute the filter, because it may fail for a row's contents. */
    rowsSql: (condition: string) => `select ${seen}, ${stateText} as "stateText", ${transaction} as "transactionId"
        from ${from} where ${condition}${notBeforeStartSql(table, shape, served.start)}${isInSliceSql(rows, 1)} order by ${id}`,
    /** Selects the ids in $1 that the filter includes; null without a filter. */
    filtered:
      filtered === ''
        ? null
        : `select ${idText} as "outboxId" from ${from} where ${id} = any($1::${idType}[])${filtered}`,
    /** Selects the rows of $1 whose state would change if the status in $1 was written back. */
    outdated:
      written &&
      `select r."outboxId" from ${rowStatusesSql} join ${from} on ${id} = r."outboxId"::${idType}
       where ${written.castValueSql} is distinct from ${prefixedColumnSql(written.column)}`,
  }
}

interface RowsUnderWay {
  /** Rows that the ledger lacks. */
  unknown: RowUnderWay[]
  /** Ids that have a record in the ledger. If the record has ended, its end was not written back. */
  known: string[]
  canTell: boolean
}

export async function readRowsUnderWay(
  table: OpenTable,
  { after, upTo }: TableSlice,
  shouldIncludeWaiting = false,
): Promise<RowsUnderWay> {
  const { db, memory } = table
  const statements = rowsUnderWayStatements(table)
  const canTell = statements.underWay !== null
  const condition = shouldIncludeWaiting ? statements.underWayOrNamed : statements.underWay
  if (condition === null) return { unknown: [], known: [], canTell }
  const { rows } = await db.query<RowUnderWay>(statements.rowsSql(condition), [after, upTo])
  const { known, conflicts } = await memory.findCapturedRows(rows)
  const missed = rows.filter(({ outboxId }) => !known.has(outboxId))
  const unknown = await leaveOutOthers(db, statements.filtered, missed)
  const others = new Set(conflicts.map(({ outboxId }) => outboxId))
  return { unknown, known: statements.hasEndValues ? [...known.difference(others)] : [], canTell }
}

/**
 * Leaves out rows that show the state of a failed, rejected or uncertain record, as far as the table has a value for
 * the state.
 */
export async function leaveOutCurrentRows(
  { ledger }: Outbox,
  table: OpenTable,
  outboxIds: readonly string[],
): Promise<string[]> {
  const statuses = await readReportedStatesNeedingAttention(ledger, outboxIds)
  const { outdated } = rowsUnderWayStatements(table)
  if (statuses.length === 0 || outdated === undefined) return [...outboxIds]
  const { rows } = await table.db.query<{ outboxId: string }>(outdated, [JSON.stringify(statuses)])
  const current = new Set(statuses.map(({ outboxId }) => outboxId))
  for (const { outboxId } of rows) current.delete(outboxId)
  return outboxIds.filter((outboxId) => !current.has(outboxId))
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

export function transactionIdInRowSql({ write }: OutboxTable, shape: TableShape): string {
  const texts = write
    .filter(({ what }) => what === 'transaction_id')
    .map(({ column: name }) => `nullif(btrim(${columnTextSql(name, shape)}), '')`)
  return texts.length === 0 ? 'null::text' : `coalesce(${texts})`
}
