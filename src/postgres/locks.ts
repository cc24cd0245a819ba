import { setTimeout } from 'node:timers/promises'
import { createPool, type Database } from './database.ts'
import { catalogPathSettings } from './sessionSettings.ts'

/**
 * A session that others wait for. Null if our role may not see it. Has only the kind of statement, because the text may
 * hold data.
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
 * Reads the sessions that block ours. Leaves out sessions that wait, too, and those of outboxd, which end by
 * themselves.
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
  return rows.map(({ query, ...session }) => ({ ...session, statement: toStatementKind(query) }))
}

const firstLookMs = 1_000
const againMs = 500

/**
 * Watches which sessions block ours, because Postgres cannot say it after a statement has given up. Needs no connection
 * in the first second.
 */
export function watchLockingSessions(url: string, name: string) {
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
    .catch(() => {}) // stopped, or the database is away
  return {
    holders: (): readonly LockingSession[] => holders,
    async [Symbol.asyncDispose](): Promise<void> {
      stop.abort()
      await watching
    },
  }
}

const kinds =
  /^(?:(?:alter|create|drop) (?:table|index|trigger)|lock(?: table)?|refresh materialized view|vacuum|cluster|reindex|truncate|analyze|select|insert|update|delete|merge|copy|fetch|begin|start transaction|savepoint|prepare transaction|commit|rollback|set|with|call|do)\b/

const blank = /^(\s|--[^\n]*(\n|$)|\/\*[\s\S]*?\*\/)*/

/** Returns a kind from a closed list, so that the statement's data is not shown. */
export function toStatementKind(query: string | null): string | null {
  if (query === null || query === '' || query.startsWith('<insufficient privilege>')) return null
  const words = query.replace(blank, '').replace(/\s+/g, ' ').toLowerCase()
  return kinds.exec(words)?.[0] ?? 'another statement'
}

/** The locks of INSERT and stronger ones. */
const writingModes = `'RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'`

/**
 * Selects virtual ids of the transactions that may be inserting into tables. A standby does not know them.
 *
 * An inserting transaction locks the table before it draws a number from the sequence. So when all holders of that lock
 * have ended, every row up to a number seen before is visible. One statement may read number and locks, because
 * pg_locks is read after its snapshot. Transaction ids are not enough, because a transaction has none before it writes.
 *
 * @param tables SQL: their oids, or a query for them
 */
export const tableWriterTransactionsSql = (tables: string): string => `select virtualtransaction from pg_locks
  where locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
    and relation in (${tables}) and mode in (${writingModes})`
