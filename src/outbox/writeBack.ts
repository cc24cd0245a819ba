import type { RowOutcome, RowStatus } from '../model.ts'
import { beginTransaction, type Database } from '../postgres/database.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { writeBackStatements } from './writeBackStatements.ts'

const statementMaxMs = 10_000

/** Opens a transaction that writes back. Postgres ends one that takes longer, or whose daemon stopped within it. */
export const writeBackOpeningSql = `set local statement_timeout = ${statementMaxMs}; set local idle_in_transaction_session_timeout = ${statementMaxMs}`

/**
 * Call this before the states are read, so that a late instance never writes an earlier state over a later one.
 * @returns false if another instance writes back
 */
export async function tryLockWriteBack(db: Database, { shape }: OpenTable): Promise<boolean> {
  const { rows } = await db.query<{ isLocked: boolean }>(
    'select pg_try_advisory_xact_lock(7163, $1::regclass::oid::int) as "isLocked"',
    [shape.qualified],
  )
  return rows[0]?.isLocked ?? false
}

/** Waits until no instance writes back. Later reads then see all that instances were writing. */
export async function waitForWriteBack(outbox: Outbox): Promise<void> {
  const { db: sessions, shape } = await outbox.open()
  await using transaction = await beginTransaction(sessions)
  await transaction.db.query(`set local lock_timeout = ${3 * statementMaxMs}; set local statement_timeout = 0`)
  await transaction.db.query('select pg_advisory_xact_lock(7163, $1::regclass::oid::int)', [shape.qualified])
}

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
  const outcomes = new Map(rows.map(({ outboxId, outcome }) => [outboxId, outcome]))
  // A state that no column shows counts as written.
  return statuses.map(({ outboxId }) => outcomes.get(outboxId) ?? 'written')
}
