import type { StartPosition } from '../ledger/servedOutbox.ts'
import type { Database } from '../postgres/database.ts'
import { column, columnOf } from './columns.ts'
import type { TableShape } from './inspectTable.ts'
import { isNoValueOfType } from './isNoValueOfType.ts'
import { type OutboxTable, saysTaken } from './outboxTable.ts'
import { startExpression } from './startPosition.ts'
import { rowExpressions } from './statements.ts'

/** Rows that say that they wait, and lie before a start position, so that nobody takes them. */
export interface HiddenRows {
  /** At most `hiddenMax`. */
  rows: number
  /** ISO 8601 text; null where there is none, or the table does not say. */
  oldest: string | null
}

/** More are not counted: the number need only be too large to overlook. */
export const hiddenMax = 10_000

interface Described {
  table: OutboxTable
  shape: TableShape
}

/** @returns null where rows do not say that they wait, or none lies before the start since there is none */
export async function readHidden(
  db: Database,
  { table, shape }: Described,
  start: StartPosition,
): Promise<HiddenRows | null> {
  if (!saysTaken(table) || (start.id === null && start.at === null)) return null
  const { waits, createdAt } = rowExpressions(table, shape, { id: null, at: null })
  const { rows } = await db.query<HiddenRows>(
    `select count(*)::int as rows, min(at) as oldest from (
       select ${createdAt} as at from ${shape.qualified} o
       where ${waits} and not (true${startExpression(table, shape, start)}) limit ${hiddenMax}
     ) hidden`,
  )
  return rows[0] ?? null
}

/** Whether a row lies before a start position. */
export async function liesBefore(
  db: Database,
  { table, shape }: Described,
  start: StartPosition,
  outboxId: string,
): Promise<boolean> {
  const begins = startExpression(table, shape, start)
  const { rowCount } = await db.query(
    `select from ${shape.qualified} o where ${column(table.id)}::text = $1 and not (true${begins})`,
    [outboxId],
  )
  return (rowCount ?? 0) > 0
}

/** So far above the highest id a position may lie: somebody may be writing. */
const ahead = 1_000

/**
 * Why a start position cannot be used; null where it can. One that is still to come would hide rows that nobody has
 * written yet.
 *
 * @throws OutboxTableUnusable where the table lacks what the position speaks of
 */
export async function whyNoStart(
  db: Database,
  { table, shape }: Described,
  start: StartPosition,
): Promise<string | null> {
  try {
    const { waits } = rowExpressions(table, shape, start)
    await db.query(`explain select from ${shape.qualified} o where ${waits}`)
  } catch (error) {
    if (start.id !== null && isNoValueOfType(error))
      return `--start id:${start.id}: that is no value of the column ${table.id}`
    throw error
  }
  if (start.at !== null) {
    const { rowCount } = await db.query('select where $1::timestamptz > clock_timestamp()', [start.at])
    if ((rowCount ?? 0) > 0) return `--start since:${start.at}: that is still to come`
  }
  if (start.id === null || !/^(bigint|integer|smallint|numeric)$/.test(columnOf(shape, table.id).baseType)) return null
  const { rows } = await db.query<{ highest: string }>(
    `select greatest((select max(${column(table.id)}) from ${shape.qualified} o)::numeric,
       pg_sequence_last_value(pg_get_serial_sequence($1, $2)::regclass)::numeric, 0)::text as highest`,
    [shape.qualified, table.id],
  )
  const highest = rows[0]?.highest ?? '0'
  return Number(start.id) > Number(highest) + ahead
    ? `--start id:${start.id}: that is still to come, the highest id is ${highest}`
    : null
}
