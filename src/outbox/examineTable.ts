import type pg from 'pg'
import type { ServedOutbox } from '../ledger/servedOutbox.ts'
import { findRightProblems } from './findRightProblems.ts'
import { findStatementProblems, type NamedStatements } from './findStatementProblems.ts'
import { findWriteProblems } from './findWriteProblems.ts'
import { inspectNamed, type OpenTable, openTable } from './openTable.ts'
import type { OutboxTable } from './outboxTable.ts'

/**
 * Looks at everything of a table that the daemon will meet, and needs no ledger for it: rights, columns, what is written, and every
 * statement. Says what is wrong, a finding each; where one thing hides the next, the first.
 *
 * @throws OutboxTableUnusable with what the description and the table disagree on
 */
export async function examineTable(pool: pg.Pool, table: OutboxTable): Promise<string[]> {
  const rights = await findRightProblems(pool, table)
  if (rights.length > 0) return rights
  const inspected = await inspectNamed(pool, table)
  const named = (clause: string) => `the table ${inspected.shape.qualified} ${clause}`
  const written = await findWriteProblems(pool, table, inspected.shape)
  if (written.length > 0) return written.map(named)
  const context = { served: anyServed, unfilterable: [] }
  // The ledger is not asked: nothing but the statements is wanted.
  const refused = await findStatementProblems(pool, statementsOf(openTable(pool, table, inspected, context, pool)))
  const grant = await grantOfAll(pool, inspected.shape.qualified)
  return refused.map((clause) => named(deniesTable(clause, table) ? `${clause}\n${grant}` : clause))
}

/** Only Postgres knows which columns a filter reads. */
const deniesTable = (clause: string, { table }: OutboxTable) =>
  new RegExp(`SQLSTATE 42501: permission denied for \\w+ ${RegExp.escape(table)} `).test(clause)

async function grantOfAll(pool: pg.Pool, qualified: string): Promise<string> {
  const { rows } = await pool.query<{ role: string }>('select pg_catalog.quote_ident(current_user) as role')
  return `grant select on ${qualified} to ${rows[0]?.role};`
}

const anyServed: ServedOutbox = {
  epoch: 0,
  identity: null,
  start: { id: null, at: null },
  sinceMs: 0,
  rowsEdited: false,
  readings: 0,
}

/** Every statement on the table, but for those that a person's commands alone use. */
function statementsOf({ sql, writing, taken, cursorScan, passed, unknownStatus }: OpenTable): NamedStatements {
  const { marked, free, held, lock, lockById, overtaking, leftTypes, lockOne, ...read } = sql
  const locking = { marked, free, held, lock, lockById, overtaking, leftTypes, lockOne }
  return {
    ...read,
    ...(cursorScan === null ? locking : { ...cursorScan.statements, passed: passed.rows(true, true) }),
    ...(unknownStatus === null ? {} : { unknownStatus: unknownStatus.rows(true, true) }),
    ...(writing === null ? {} : { mark: writing.mark, report: writing.report, unheld: writing.unheld }),
    ...(taken.taken === null
      ? {}
      : {
          end: taken.end,
          endAfter: taken.endAfter,
          stamped: taken.stamped,
          taken: taken.rows(taken.taken, true, true),
        }),
  }
}
