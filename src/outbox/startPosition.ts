import type { StartPosition } from '../ledger/servedOutbox.ts'
import { column, columnOf, literal, unitsPerSecond } from './columns.ts'
import { OutboxTableUnusable, type TableShape } from './inspectTable.ts'
import type { CreatedAt, OutboxTable } from './outboxTable.ts'

/**
 * The condition that a row is not from before the start position, to follow another; empty where all are ours. A row that
 * does not say when it was recorded is ours: it is rather sent than lost.
 */
export function startExpression(table: OutboxTable, shape: TableShape, { id, at }: StartPosition): string {
  const fromId = id === null ? '' : ` and ${column(table.id)} >= ${literal(id)}::${columnOf(shape, table.id).type}`
  if (at === null) return fromId
  if (table.createdAt === null)
    throw new OutboxTableUnusable(
      `the ledger has the start position ${at}, and the table ${shape.qualified} is described without created_at: name the column, or give another with outboxd adopt --start`,
    )
  const recorded = column(table.createdAt.column)
  return `${fromId} and (${recorded} is null or ${recorded} >= ${momentAs(table.createdAt, shape, at)})`
}

/** The moment in the type of the column, so that its index serves. */
function momentAs({ column: name, unit, timezone }: CreatedAt, shape: TableShape, at: string): string {
  const moment = `${literal(at)}::timestamptz`
  if (unit !== null) return `extract(epoch from ${moment}) * ${unitsPerSecond[unit]}`
  const { baseType } = columnOf(shape, name)
  if (baseType === 'timestamp with time zone') return moment
  const local = `(${moment} at time zone ${literal(timezone)})`
  return baseType === 'date' ? `${local}::date` : local
}
