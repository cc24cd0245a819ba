import type pg from 'pg'
import { codeOf } from './sqlState.ts'

/**
 * The settings that our sessions have, whatever `alter role … set` or `alter database … set` say.
 * docs/reference/session-settings.md lists them; `test/e2e/hostileSettings.test.ts` sets them.
 */

/**
 * How the server writes values as text: payloads, and the hashes that rows are known by, must not depend on settings.
 */
export const textSettings = {
  TimeZone: 'UTC',
  DateStyle: 'ISO,MDY',
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
} as const

/** What statements mean and what ends them. Every supported version knows these settings. */
export const statementSettings = {
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
 * Sets what not every version knows, or not every role may set, in a session of our own only, because a pooler lends
 * its sessions to others.
 *
 * @returns whether the session is ours: a pooler (pgbouncer) has told another process of the server than the one that
 * answers
 * @throws Error if triggers are off for the role and it may not turn them on
 */
export async function applySessionSettings(client: Pick<pg.ClientBase, 'query'>): Promise<boolean> {
  try {
    const pid = Number((client as { processID?: number | null }).processID ?? 0)
    // One string is one transaction, so that no namesake in the role's search path runs before the session closes it.
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

/** False if a pooler lends others. */
export async function hasOwnSessions(pool: pg.Pool): Promise<boolean> {
  const client = await pool.connect()
  try {
    return await applySessionSettings(client)
  } finally {
    client.release()
  }
}

/**
 * Names are looked up in the catalog only, so that nothing in a schema of the role's search path can stand in for the
 * server's functions. Only statements that run the client's code use the role's path (`withRolePath`).
 */
export const catalogPathSettings = { search_path: 'pg_catalog' } as const

/** By application_name: commands and other instances know a daemon's sessions by these. */
export const daemonSessions = {
  work: 'outboxd',
  outbox: 'outboxd outbox',
  queue: 'outboxd queue',
  heartbeat: 'outboxd heartbeat',
  listen: 'outboxd listen',
  registration: 'outboxd registration',
} as const

export const connectionsMax = { work: 8, outbox: 4, queue: 2, heartbeat: 2, listen: 1, registration: 1 } as const

export const daemonConnections = {
  ledger: connectionsMax.work + connectionsMax.queue + connectionsMax.heartbeat,
  outbox: connectionsMax.outbox + connectionsMax.listen + connectionsMax.registration,
} as const
