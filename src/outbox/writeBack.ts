import type { RowOutcome, RowStatus } from '../model/outbox.ts'
import type { Database } from '../postgres/database.ts'
import type { OpenTable } from './openTable.ts'
import { writeBackStatements } from './writeBackStatements.ts'

const statementMaxMs = 10_000

/** Opens a transaction that writes back. Postgres ends one that takes longer, or whose daemon stopped within it. */
export const writeBackOpeningSql = `set local statement_timeout = ${statementMaxMs}; set local idle_in_transaction_session_timeout = ${statementMaxMs}`

/**
 * Writes states to their rows, except to rows that another session has locked.
 * @returns the outcomes in the order of the statuses
 */
export async function writeStatesToRows(
  db: Database,
  table: OpenTable,
  statuses: readonly RowStatus[],
): Promise<RowOutcome[]> {
  const writing = writeBackStatements(table)
  if (writing === null) return statuses.map(() => 'written')
  await db.query(`set local lock_timeout = '1s'`)
  const { rows } = await db.query<{ outboxId: string; outcome: RowOutcome }>(writing.report, [
    JSON.stringify(statuses.filter(({ state }) => writing.states.has(state))),
  ])
  // Deferred triggers of the table run now, while no record is locked and no lock is waited for longer than a second.
  await db.query('set constraints all immediate')
  const outcomes = new Map(rows.map(({ outboxId, outcome }) => [outboxId, outcome]))
  // A state that no column shows counts as written.
  return statuses.map(({ outboxId }) => outcomes.get(outboxId) ?? 'written')
}
