import type pg from 'pg'
import { codeOf } from './sqlState.ts'

/**
 * The server settings that our sessions have, whatever `alter role … set` or `alter database … set` say. docs/operations.md,
 * "Settings of the role or the database", has the table of all that could matter; `test/e2e/hostileSettings.test.ts` sets them.
 */

/**
 * How the server writes values as text, by its defaults: payloads, and the hashes that rows are known by, are to be the same
 * whatever a database or a role is set to, now or later.
 */
export const asText = {
  TimeZone: 'UTC',
  DateStyle: 'ISO,MDY',
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
} as const

/** What statements mean and what ends them, by the server's defaults. Every supported version knows these settings. */
export const ownSettings = {
  array_nulls: 'on',
  client_min_messages: 'notice', // a COMMIT that did not wait for its standby says so by a warning
  default_tablespace: '', // pg-boss's partitioned tables refuse to be made in another
  default_transaction_deferrable: 'off',
  default_transaction_isolation: 'read committed',
  exit_on_error: 'off',
  lock_timeout: '0',
  quote_all_identifiers: 'off',
  row_security: 'on',
  standard_conforming_strings: 'on',
  transform_null_equals: 'off',
} as const

/**
 * Set once a session is there: not every version knows these, or not every role may set them. A pooler ends what is idle
 * itself, and lends its sessions to others, so only a session of our own is changed.
 *
 * @returns whether the session that answers is the one that was begun with us: a pooler that lends its sessions for one
 * transaction each (pgbouncer) has told us another process of the server than the one that does the work
 * @throws Error if triggers are off for the role and it may not turn them on
 */
export async function takeOwnSettings(client: Pick<pg.ClientBase, 'query'>): Promise<boolean> {
  try {
    const pid = Number((client as { processID?: number | null }).processID ?? 0)
    // One string is one transaction, so that no namesake in the role's search path is run before a session closes it.
    const results = (await client.query(
      `set local search_path = pg_catalog, pg_temp;
       select pg_backend_pid() = ${pid} as "isOwn", (
         select count(set_config(s.name, w.value, false)) from pg_settings s
         join (values ('idle_session_timeout', '0'), ('transaction_timeout', '0'), ('session_replication_role', 'origin')) w (name, value)
           on w.name = s.name and w.value <> s.setting
         where pg_backend_pid() = ${pid})`,
    )) as unknown as pg.QueryResult<{ isOwn: boolean }>[]
    return results[1]?.rows[0]?.isOwn ?? false
  } catch (error) {
    if (codeOf(error) !== '42501') throw error
    throw new Error(
      'session_replication_role is not origin for this role, so no trigger of the ledger or the outbox would run, and the role may not change it. Let a superuser give: alter role … reset session_replication_role (or alter database …)',
      { cause: error },
    )
  }
}

/** Whether statements run in the sessions that we began; a pooler lends others, for one transaction each. */
export async function hasOwnSessions(pool: pg.Pool): Promise<boolean> {
  const client = await pool.connect()
  try {
    return await takeOwnSettings(client)
  } finally {
    client.release()
  }
}

/**
 * Where our sessions look names up: in the catalog only. All tables are written with their schema, and what somebody puts into a
 * schema of the role's or the database's search path can stand in for none of the server's functions. Only statements that run
 * code of the client's, on the outbox's rows, use the role's own path (`rolePathOf`).
 */
export const ownNames = { search_path: 'pg_catalog' } as const

/** What a daemon's sessions are called, by application_name: its commands and other instances know it by them. */
export const daemonSessions = {
  work: 'outboxd',
  /** In which it claims rows of the outbox, and marks them. */
  outbox: 'outboxd outbox',
  queue: 'outboxd queue',
  heartbeat: 'outboxd heartbeat',
  listen: 'outboxd listen',
  /** In which it says that its ledger serves the outbox. */
  registration: 'outboxd registration',
} as const

/** The most connections that a daemon opens of each. */
export const connectionsMax = { work: 8, outbox: 4, queue: 2, heartbeat: 2, listen: 1, registration: 1 } as const

/** The most connections that a daemon opens to each database. */
export const daemonConnections = {
  ledger: connectionsMax.work + connectionsMax.queue + connectionsMax.heartbeat,
  outbox: connectionsMax.outbox + connectionsMax.listen + connectionsMax.registration,
} as const
