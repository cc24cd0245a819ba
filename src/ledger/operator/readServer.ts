import type { Database } from '../../postgres/database.ts'

/** The server's version, such as `18.1`. */
export async function readServerVersion(db: Database): Promise<string> {
  const { rows } = await db.query<{ version: string }>(`select current_setting('server_version') as version`)
  return rows[0]?.version ?? 'unknown'
}

/** Why a server takes no writes of ours. */
export type ReadOnlyCause = 'standby' | 'setting'

/** @returns null where it can be written */
export async function readReadOnly(db: Database): Promise<ReadOnlyCause | null> {
  const { rows } = await db.query<{ cause: ReadOnlyCause | null }>(
    `select case when pg_is_in_recovery() then 'standby'
       when current_setting('transaction_read_only') = 'on' then 'setting' end as cause`,
  )
  return rows[0]?.cause ?? null
}

/**
 * What bounds the time of our sessions, as far as it is missing: a pooler in between may not have let our own limits pass.
 *
 * @returns the statements that give the role such limits
 */
export async function readMissingLimits(db: Database): Promise<string[]> {
  const { rows } = await db.query<{ statement: string }>(
    `select format('alter role %I set %I = %L', current_user, name, wanted) as statement
     from (values ('statement_timeout', '20s'), ('idle_in_transaction_session_timeout', '10s')) as limits (name, wanted)
     where current_setting(name) = '0'`,
  )
  return rows.map(({ statement }) => statement)
}
