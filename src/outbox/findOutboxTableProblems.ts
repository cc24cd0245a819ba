import type pg from 'pg'
import type { ServedOutbox } from '../ledger/binding.ts'
import { beginTransaction, type Database, type DatabasePool, isLockTimeoutOrCanceled } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import { claimStatements } from './claimRows.ts'
import { type OpenTable, openTable } from './openTable.ts'
import { findPermissionProblems } from './outboxGrants.ts'
import { type OutboxTable, qualifiedNameSql } from './outboxTable.ts'
import { advancePositionSql } from './position.ts'
import { waitingRowsSql } from './readRows.ts'
import { addTableSchemaIfFound, readTableShapeAndIdentity } from './readTableShape.ts'
import { findWriteBackProblemClauses } from './tryWriteBack.ts'
import { writeBackStatements } from './writeBack.ts'

/**
 * Finds reasons why the daemon would fail on this table. Needs no ledger. If one problem hides others, returns only
 * that one.
 *
 * @throws OutboxTableUnusable if the table differs from its description
 */
export async function findOutboxTableProblems(pool: pg.Pool, described: OutboxTable): Promise<string[]> {
  const table = await addTableSchemaIfFound(pool, described)
  const rights = await findPermissionProblems(pool, table)
  if (rights.length > 0) return rights
  const inspected = await readTableShapeAndIdentity(pool, table)
  const named = (clause: string) => `the table ${qualifiedNameSql(described)} ${clause}`
  const written = await findWriteBackProblemClauses(pool, table, inspected.shape)
  if (written.length > 0) return written.map(named)
  const open = openTable(pool, table, inspected, { served: anyServed, failingIds: [] })
  return (await findStatementProblems(open.db, statementsOf(open))).map(named)
}

const anyServed: ServedOutbox = {
  identity: null,
  start: { id: null, at: null },
  startGiven: null,
  sinceMs: 0,
  recoveredMs: null,
}

/** The statements that use each column, as the daemon does. */
function statementsOf(table: OpenTable): NamedStatements {
  const writing = writeBackStatements(table)
  const { filter } = table.table
  const { from, filtered } = table.rows
  const named: Record<string, CountedStatement> = {
    lock: [claimStatements(table).lock, 5],
    read: [waitingRowsSql(table), 2],
    ...(writing !== null && { mark: [writing.mark, 1], report: [writing.report, 1] }),
    ...(table.form === 'append-only' && { advance: [advancePositionSql(table), 2] }),
  }
  if (filter === null) return named
  // The first statement, so that a problem names the filter. The bare filter shows brackets that close ours.
  const both = `select 1 from ${from} where true${filtered} union all select 1 from ${from} where ${filter}`
  return { filter: [both, 0], ...named }
}

/** False if the ledger is not there yet, or our role may not write to it: `check` reports that apart. */
async function canUseLedger(db: Database): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'outboxd'::name and c.relname = 'outbox_cursor' and has_schema_privilege(n.oid, 'usage')
       and has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')`,
  )
  return (rowCount ?? 0) > 0
}

/** A statement, and how many parameters it has. */
type CountedStatement = readonly [string, number]
type NamedStatements = Readonly<Record<string, CountedStatement>>

/**
 * Lets Postgres plan the statements with our role's rights. This finds wrong types, and missing columns, functions and
 * permissions.
 */
async function findStatementProblems(sessions: DatabasePool, statements: NamedStatements): Promise<string[]> {
  const refusals = new Map<string, string[]>()
  const hasLedger = await canUseLedger(sessions)
  await using transaction = await beginTransaction(sessions) // never committed
  await transaction.db.query(`set local lock_timeout = '2s'`)
  for (const [name, statement] of Object.entries(statements)) {
    if (!hasLedger && statement[0].includes('outboxd.')) continue
    const why = await explain(transaction.db, statement)
    if (why === 'locked') return [locked]
    if (why !== null && name === 'filter') return [`has a filter that Postgres refuses: ${why}`]
    if (why !== null) refusals.set(why, [...(refusals.get(why) ?? []), name])
  }
  return [...refusals].map(
    ([why, names]) => `would not let the daemon do its work: ${why} (in the statements ${names.join(', ')})`,
  )
}

/** Said once, because each further statement would wait for the same lock. */
const locked =
  'is locked by another session, so Postgres could not plan our statements. `outboxd status` names the session'

/** @returns why the statement would fail */
async function explain(db: Database, [statement, parameters]: CountedStatement): Promise<string | null> {
  await db.query('savepoint explained')
  try {
    await db.query(
      `explain ${statement}`,
      Array.from({ length: parameters }, () => null),
    )
    return null
  } catch (error) {
    await db.query('rollback to savepoint explained')
    if (isLockTimeoutOrCanceled(error)) return 'locked'
    return `SQLSTATE ${errorCodeOf(error)}: ${(error as Error).message}`
  }
}
