import type { Database } from './database.ts'
import { sessionNamesOfLedgerSql } from './ledgerSchema.ts'

/** What it costs to end a session. docs/run/runbook.md says the same. */
export const sessionEndCost = 'That rolls back the session’s transaction, so first ask whoever uses the program.'

/** A session that holds a lock for which ours waits. What our role may not see is null. */
export interface LockingSession {
  /** For pg_terminate_backend; 0 for a prepared transaction. */
  pid: number
  application: string | null
  state: string | null
  /** The kind of statement only, because its text may contain data. */
  statement: string | null
  openForMs: number | null
}

const statementCharsMax = 200

/**
 * Finds the sessions that block ours. Leaves out those that wait for a lock, and those of outboxd, which end by
 * themselves.
 */
export async function readLockingSessions(db: Database, ownApplicationName: string): Promise<LockingSession[]> {
  const { rows } = await db.query<LockingSession & { query: string | null }>(
    `with recursive ours as (
       select pid from pg_stat_activity where application_name in ${sessionNamesOfLedgerSql('array[$1]')} and datname = current_database()
     ), chain (pid) as (
       select pid from ours
       union
       select blocker.pid from chain, unnest(pg_blocking_pids(chain.pid)) blocker (pid)
     )
     select chain.pid, a.application_name as application, a.state, left(a.query, $2) as query,
       extract(epoch from clock_timestamp() - a.xact_start)::float8 * 1000 as "openForMs"
     from chain left join pg_stat_activity a on a.pid = chain.pid
     where chain.pid not in (select pid from ours) and coalesce(a.application_name, '') not like 'outboxd%' and cardinality(pg_blocking_pids(chain.pid)) = 0
     order by a.xact_start, chain.pid`,
    [ownApplicationName, statementCharsMax],
  )
  return rows.map(({ query, ...session }) => ({ ...session, statement: toStatementKind(query) }))
}

const kinds =
  /^(?:(?:alter|create|drop) (?:table|index|trigger)|lock(?: table)?|refresh materialized view|vacuum|cluster|reindex|truncate|analyze|select|insert|update|delete|merge|copy|fetch|begin|start transaction|savepoint|prepare transaction|commit|rollback|set|with|call|do)\b/

const blank = /^(\s|--[^\n]*(\n|$)|\/\*[\s\S]*?\*\/)*/

/** Returns a kind from a fixed list, so that no data of the statement is shown. */
export function toStatementKind(query: string | null): string | null {
  if (query === null || query === '' || query.startsWith('<insufficient privilege>')) return null
  const words = query.replace(blank, '').replace(/\s+/g, ' ').toLowerCase()
  return kinds.exec(words)?.[0] ?? 'another statement'
}

/** The lock mode of INSERT, and the stronger modes. */
const writingModes = `'RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'`

/**
 * Selects the virtual ids of transactions that hold a write lock on tables. A standby does not list them.
 *
 * An insert takes this lock before it draws a number from the sequence. Read the sequence, then the holders, and wait
 * until these transactions have ended: every row up to that number is visible. One statement may read both, because
 * pg_locks is not bound to the statement's snapshot. Transaction ids are not enough: a transaction has none before its
 * first write.
 *
 * @param tableOidsSql the tables' oids, or a query for them
 */
export const tableWriterTransactionsSql = (tableOidsSql: string): string => `select virtualtransaction from pg_locks
  where locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
    and relation in (${tableOidsSql}) and mode in (${writingModes})`
