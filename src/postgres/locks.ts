import { setTimeout } from 'node:timers/promises'
import { createPool, type Database } from './database.ts'
import { catalogPathSettings } from './sessionSettings.ts'

/**
 * A session that others wait for. Null if our user may not know. Only the kind of its statement is told, because the
 * text may hold the client's data.
 */
export interface LockingSession {
  /** For pg_terminate_backend; 0 for a prepared transaction. */
  pid: number
  application: string | null
  state: string | null
  statement: string | null
  openForMs: number | null
}

const statementCharsMax = 200

/**
 * Reads the sessions that ours wait for. One that waits itself is left out, because ending it would free nothing; so
 * is one of outboxd, which ends by itself.
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

export interface LockWatch extends AsyncDisposable {
  holders(): readonly LockingSession[]
}

/**
 * Watches for which sessions ours wait, because Postgres cannot tell after a statement has given up. Looks first
 * after a second, so that quick work costs no connection.
 *
 * @param name application_name of our sessions
 */
export function watchLocks(url: string, name: string): LockWatch {
  let holders: readonly LockingSession[] = []
  const stop = new AbortController()
  const wait = (ms: number) => setTimeout(ms, undefined, { signal: stop.signal })
  const watching = wait(firstLookMs)
    .then(async () => {
      const pool = createPool({
        url,
        name: `${name} locks`,
        connections: 1,
        onIdleError: () => {},
        settings: catalogPathSettings,
      })
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

const kinds =
  /^(?:(?:alter|create|drop) (?:table|index|trigger)|lock(?: table)?|refresh materialized view|vacuum|cluster|reindex|truncate|analyze|select|insert|update|delete|merge|copy|fetch|begin|start transaction|savepoint|prepare transaction|commit|rollback|set|with|call|do)\b/

/** Comments and blanks before the first word. */
const blank = /^(\s|--[^\n]*(\n|$)|\/\*[\s\S]*?\*\/)*/

/** From a closed list, so that nothing of its data is told. */
export function statementKind(query: string | null): string | null {
  if (query === null || query === '' || query.startsWith('<insufficient privilege>')) return null
  const words = query.replace(blank, '').replace(/\s+/g, ' ').toLowerCase()
  return kinds.exec(words)?.[0] ?? 'another statement'
}

/** An insert's lock on its table, and stronger ones. */
const writingModes = `'RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'`

/**
 * A query for the transactions that may be inserting into tables, by virtual number. A standby does not know them.
 *
 * An inserting transaction locks the table from before it draws a number from the sequence until it ends. So when all
 * that held the lock after a number was seen have ended, every row up to that number is visible. One statement may
 * read number and locks, because pg_locks is read after its snapshot. The oldest transaction's number would not do: a
 * transaction has none between drawing a number and writing the row.
 *
 * @param tables their oids: expressions, or a query
 */
export const tableWritersSql = (tables: string): string => `select virtualtransaction from pg_locks
  where locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
    and relation in (${tables}) and mode in (${writingModes})`
