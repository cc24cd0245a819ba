import { type Database, quoteIdentifier } from '../postgres/database.ts'
import { columnOf } from './columns.ts'
import { findPolicyRemarks } from './findPolicyProblems.ts'
import { findWriteRemarks } from './findWriteProblems.ts'
import type { TableShape } from './inspectTable.ts'
import type { OutboxTable } from './outboxTable.ts'

/** What is no mistake, and may be none of what was meant: clauses for `outboxd check`. */
export async function findRemarks(db: Database, table: OutboxTable, shape: TableShape): Promise<string[]> {
  return [
    ...(await findPolicyRemarks(db, shape.qualified)),
    ...(await findNullFlags(db, table, shape)),
    ...findWriteRemarks(table, shape),
  ]
}

/** A flag that is neither set nor not set: such a row does not wait, and is never taken. */
async function findNullFlags(db: Database, { state }: OutboxTable, shape: TableShape): Promise<string[]> {
  if (state === null || state.kind === 'timestamp' || state.waiting.includes(null)) return []
  const { baseType, notNull } = columnOf(shape, state.column)
  if (baseType !== 'boolean' || notNull) return []
  const flag = quoteIdentifier(state.column)
  const { rowCount } = await db.query(`select from ${shape.qualified} where ${flag} is null limit 1`)
  if (rowCount === 0) return []
  return [
    `rows whose ${flag} is NULL do not wait, and are never taken: update ${shape.qualified} set ${flag} = false where ${flag} is null, then make it not null`,
  ]
}
