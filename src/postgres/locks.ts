import { setTimeout } from 'node:timers/promises'
import { createPool, type Database } from './database.ts'
import { ownNames } from './sessionSettings.ts'

/** A session that others wait for. Only the kind of its statement is told, because the statement may hold the client's data. */
export interface LockingSession {
  /** For pg_terminate_backend; 0 stands for a prepared transaction. */
  pid: number
  application: string | null
  /** As in pg_stat_activity; null if our user may not know. */
  state: string | null
  /** The kind of the statement that it runs, or ran last; null if our user may not know. */
  statement: string | null
  /** How long its transaction has been open, milliseconds; null if our user may not know. */
  openForMs: number | null
}

/** Enough to tell the kind of a statement by. */
const statementCharsMax = 200

/**
 * The sessions that our sessions of a name wait for. A session that waits itself is left out, because ending it would free
 * nothing. So is a session of outboxd: it ends by itself, and an operator must not end it.
 *
 * @param name application_name of our sessions
 */
export async function readLockingSessions(db: Database, name: string): Promise<LockingSession[]> {
  const { rows } = await db.query<LockingSession & { query: string | null }>(
    `with recursive ours as (
       select pid from pg_stat_activity where application_name = $1 and datname = current_database()
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
    [name, statementCharsMax],
  )
  return rows.map(({ query, ...session }) => ({ ...session, statement: statementKind(query) }))
}

const firstLookMs = 1_000
const againMs = 500

/** Looks, on a connection of its own, for which sessions ours wait. */
export interface LockWatch extends AsyncDisposable {
  /** The sessions that ours were last seen to wait for. */
  holders(): readonly LockingSession[]
}

/**
 * Watches for which sessions ours wait, until it is disposed of: after a statement has given up, Postgres can no longer tell. Looks
 * first after a second, so that quick work costs no connection.
 *
 * @param name application_name of our sessions
 */
export function watchLocks(url: string, name: string): LockWatch {
  let holders: readonly LockingSession[] = []
  const stop = new AbortController()
  const wait = (ms: number) => setTimeout(ms, undefined, { signal: stop.signal })
  const watching = wait(firstLookMs)
    .then(async () => {
      const pool = createPool({ url, name: `${name} locks`, connections: 1, onIdleError: () => {}, settings: ownNames })
      try {
        for (;;) {
          const seen = await readLockingSessions(pool, name)
          if (seen.length > 0) holders = seen
          await wait(againMs)
        }
      } finally {
        await pool.end()
      }
    })
    .catch(() => {}) // it was stopped, or the database cannot be asked
  return {
    holders: () => holders,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await watching
    },
  }
}

/** Statements by their first words. */
const kinds =
  /^(?:(?:alter|create|drop) (?:table|index|trigger)|lock(?: table)?|refresh materialized view|vacuum|cluster|reindex|truncate|analyze|select|insert|update|delete|merge|copy|fetch|begin|start transaction|savepoint|prepare transaction|commit|rollback|set|with|call|do)\b/

/** Comments and blanks before the first word. */
const blank = /^(\s|--[^\n]*(\n|$)|\/\*[\s\S]*?\*\/)*/

/** The kind of a statement, from a closed list, so that nothing of its data is told. @returns null if our user may not see it */
export function statementKind(query: string | null): string | null {
  if (query === null || query === '' || query.startsWith('<insufficient privilege>')) return null
  const words = query.replace(blank, '').replace(/\s+/g, ' ').toLowerCase()
  return kinds.exec(words)?.[0] ?? 'another statement'
}

/** The lock that an insert holds on its table, and stronger ones that may insert too. */
const writingModes = `'RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'`

/**
 * A query for the virtual numbers of the transactions that may be inserting into tables. A standby does not know them.
 *
 * A transaction that inserts holds a lock on the table from before it draws a number from the sequence until it ends. So once a
 * number has been seen, each transaction that drew a lower one holds that lock or has ended. When all that held the lock then have
 * ended, every row up to that number is visible. One statement may read the number and the locks, because pg_locks is read after
 * the statement's snapshot was taken.
 *
 * The oldest transaction's number would not do: a transaction has none yet between drawing its row's number and writing the row, and
 * one that began long ago and has not touched the tables need not be waited for.
 *
 * @param tables their oids: expressions, or a query
 */
export const tableWritersSql = (tables: string): string => `select virtualtransaction from pg_locks
  where locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
    and relation in (${tables}) and mode in (${writingModes})`
