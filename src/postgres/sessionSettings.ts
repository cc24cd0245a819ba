import pg from 'pg'
import { errorCodeOf } from './sqlState.ts'

/**
 * The settings of our sessions, whatever `alter role … set` or `alter database … set` say.
 * test/e2e/hostileSettingsTable.ts gives the reasons.
 */

/** Payloads and creation times must not depend on settings. */
export const textFormatSettings = {
  TimeZone: 'UTC',
  DateStyle: 'ISO,MDY',
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
} as const

/** Settings that decide what a statement means, or that can end it. */
export const statementMeaningSettings = {
  array_nulls: 'on',
  client_min_messages: 'notice', // a COMMIT that did not wait for its standby warns
  default_tablespace: '', // pg-boss's partitioned tables refuse another one
  default_transaction_deferrable: 'off',
  default_transaction_isolation: 'read committed',
  exit_on_error: 'off',
  lock_timeout: '0',
  quote_all_identifiers: 'off',
  row_security: 'on',
  standard_conforming_strings: 'on',
  transform_null_equals: 'off',
} as const

/** Older versions of Postgres lack some of the last three. */
const sessionSettings = {
  ...statementMeaningSettings,
  ...textFormatSettings,
  idle_session_timeout: '0',
  session_replication_role: 'origin',
  transaction_timeout: '0',
} as const

/**
 * Applies settings to a new session. Leaves a pooler's session unchanged, because others use it.
 *
 * @returns true if the session is ours, not a pooler's
 * @throws Error if triggers are off for the role and it may not turn them on
 */
export async function applySessionSettings(
  client: Pick<pg.ClientBase, 'query'>,
  settings: Readonly<Record<string, string>> = {},
): Promise<boolean> {
  try {
    const pid = Number((client as { processID?: number | null }).processID ?? 0)
    const wanted = pg.escapeLiteral(JSON.stringify({ ...sessionSettings, ...settings }))
    // All in one text, which is one transaction, so that no function in the role's search path can replace the server's.
    const results = (await client.query(
      `set local statement_timeout = 0; set local search_path = pg_catalog, pg_temp;
       select pg_backend_pid() = ${pid} as "isOwn", (
         select count(set_config(s.name, w.value, false)) from pg_settings s
         join json_each_text(${wanted}) w (name, value) on w.name = s.name and w.value <> s.setting
         where pg_backend_pid() = ${pid})`,
    )) as unknown as pg.QueryResult<{ isOwn: boolean }>[]
    return results.at(-1)?.rows[0]?.isOwn ?? false
  } catch (error) {
    if (errorCodeOf(error) !== '42501') throw error
    throw new Error(
      'session_replication_role is not origin for this role, so no trigger of the ledger or the outbox would run. The role has no permission to change it. As a superuser, run `alter role … reset session_replication_role` (or `alter database …`)',
      { cause: error },
    )
  }
}

export async function isConnectedWithoutPooler(pool: pg.Pool): Promise<boolean> {
  const client = await pool.connect()
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    return rows[0]?.pid === (client as { processID?: number | null }).processID
  } finally {
    client.release()
  }
}

/**
 * Keeps functions in the role's search path from replacing the server's. Statements that run the client's code use
 * `withSearchPathOfRole`.
 */
export const catalogSearchPathSettings = { search_path: 'pg_catalog' } as const

/** The application_name by which commands and other instances find a daemon. */
export const daemonSessionNames = {
  work: 'outboxd',
  outbox: 'outboxd outbox',
  heartbeat: 'outboxd heartbeat',
  listen: 'outboxd listen',
} as const

export const connectionsMax = { work: 8, outbox: 4, heartbeat: 2, listen: 1 } as const
