import { setTimeout } from 'node:timers/promises'
import { createPool, type Database } from './database.ts'
import { statementKind } from './statementKind.ts'

/** A session that others wait for, as far as it may be told: its statement may hold the client's data, so its kind alone. */
export interface LockingSession {
  /** For pg_terminate_backend; 0 stands for a prepared transaction. */
  pid: number
  application: string | null
  /** As pg_stat_activity has it; null where our user may not know. */
  state: string | null
  /** The kind of the statement that it runs, or ran last; null where our user may not know. */
  statement: string | null
  /** How long its transaction has been open, milliseconds; null where our user may not know. */
  openForMs: number | null
}

/** No more of a statement is read than what its kind can be told by. */
const statementCharsMax = 200

/**
 * The sessions that those of a name wait for in the end. A session that waits in turn is passed over, since nothing is won by
 * ending it, and so is a session of outboxd itself: it ends by itself, and an operator must not end it.
 *
 * @param name of our sessions, by application_name
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

/** Sees, on a connection of its own, for whom sessions wait. */
export interface LockWatch extends AsyncDisposable {
  /** Those that were last seen to be waited for; empty where none was. */
  holders(): readonly LockingSession[]
}

/**
 * Watches for whom our sessions wait until it is disposed of: once a statement has given up nobody can tell. Work that is quick is
 * not watched.
 *
 * @param name of our sessions, by application_name
 */
export function watchLocks(url: string, name: string): LockWatch {
  let holders: readonly LockingSession[] = []
  const stop = new AbortController()
  const wait = (ms: number) => setTimeout(ms, undefined, { signal: stop.signal })
  const watching = wait(firstLookMs)
    .then(async () => {
      const pool = createPool({ url, name: `${name} locks`, connections: 1, onIdleError: () => {} })
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
    .catch(() => {}) // it was stopped, or cannot be asked: then nobody can say
  return {
    holders: () => holders,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await watching
    },
  }
}
