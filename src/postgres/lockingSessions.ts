import type { Database } from './database.ts'
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
