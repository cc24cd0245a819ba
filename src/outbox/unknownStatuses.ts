import type { StartPosition } from '../ledger/servedOutbox.ts'
import type { Database } from '../postgres/database.ts'
import { wasCanceled } from '../postgres/sqlState.ts'
import { column, literals } from './columns.ts'
import type { TableShape } from './inspectTable.ts'
import type { OutboxTable } from './outboxTable.ts'
import { textOf } from './saidRows.ts'
import { readSlice, type SliceStatements, sliceStatements } from './slices.ts'
import { startExpression } from './startPosition.ts'
import type { RowExpressions } from './statements.ts'

/** A status that the description does not name, and the rows of a slice that have it. */
export interface UnknownStatus {
  /** Cut to 40 characters; null for NULL. */
  status: string | null
  rows: number
  firstId: string
}

export interface UnknownStatusStatements extends SliceStatements {
  /** Counts the rows of a slice by their unknown statuses. */
  rows(after: boolean, upTo: boolean): string
}

/** Statuses of a slice that are told apart. */
const statusesMax = 10

/**
 * How to count rows whose status is none of those that the description names: they neither wait nor are under way, so nobody ever
 * looks at them. Null if the table has no such column, or the description names only the statuses of rows that wait.
 */
export function unknownStatusStatements(
  table: OutboxTable,
  shape: TableShape,
  expressions: RowExpressions,
  start: StartPosition,
): UnknownStatusStatements | null {
  const { state } = table
  if (state?.kind !== 'value' || state.values.size === 0 || shape.columns.get(state.column)?.baseType === 'boolean')
    return null
  const known = new Set([...state.waiting.filter((value) => value !== null), ...state.values.values()])
  const status = column(state.column)
  const isNull = state.waiting.includes(null) ? 'false' : `${status} is null`
  const from = `${shape.qualified} o`
  const slices = sliceStatements(from, expressions)
  const { idText, filtered, sort } = expressions
  return {
    ...slices,
    rows: (after, upTo) =>
      `select left(${textOf(state.column, shape)}, 40) as status, count(*)::int as rows,
         (array_agg(${idText} order by ${sort.at(-1)?.expression}))[1] as "firstId"
       from ${from} where (${isNull} or ${status} not in (${literals(known)}))${filtered}${startExpression(table, shape, start)}${slices.within(after, upTo, 1)}
       group by 1 order by 2 desc limit ${statusesMax}`,
  }
}

/** @returns null if the slice takes longer to read than a statement may */
export async function readUnknownStatuses(
  db: Database,
  statements: UnknownStatusStatements,
  after: string | null,
  sliceRows: number,
): Promise<{ unknown: UnknownStatus[]; upTo: string | null } | null> {
  try {
    const { upTo, bounds } = await readSlice(db, statements, after, sliceRows)
    const { rows } = await db.query<UnknownStatus>(statements.rows(after !== null, upTo !== null), bounds)
    return { unknown: rows, upTo }
  } catch (error) {
    if (wasCanceled(error)) return null // without an index on the id a slice is the whole table
    throw error
  }
}
