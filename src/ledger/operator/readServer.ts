import { type Database, queryOne } from '../../postgres/database.ts'
import { hasSynchronousCommits } from '../history/history.ts'

export async function readServerVersion(db: Database): Promise<string> {
  const { version } = await queryOne<{ version: string }>(db, `select current_setting('server_version') as version`)
  return version
}

export type ReadOnlyCause = 'standby' | 'setting'

/** Null if the server takes writes. */
export async function findReadOnlyCause(db: Database): Promise<ReadOnlyCause | null> {
  const { cause } = await queryOne<{ cause: ReadOnlyCause | null }>(
    db,
    `select case when pg_is_in_recovery() then 'standby'
       when current_setting('transaction_read_only') = 'on' then 'setting' end as cause`,
  )
  return cause
}

export interface Durability {
  /** Settings that are off, without which a power cut loses COMMITs. */
  off: string[]
  isSynchronous: boolean
}

export async function readDurabilitySettings(db: Database): Promise<Durability> {
  const { rows } = await db.query<{ name: string }>(
    `select name from pg_settings where name in ('fsync', 'full_page_writes') and setting = 'off' order by name`,
  )
  return { off: rows.map(({ name }) => name), isSynchronous: await hasSynchronousCommits(db) }
}

/** Returns the least and the most milliseconds by which the server's clock is ahead of ours. */
export async function readServerClockLead(
  db: Database,
  nowMs: () => number,
): Promise<{ leastMs: number; mostMs: number }> {
  await db.query('select') // opens the connection before the time is taken
  const beforeMs = nowMs()
  const { ms } = await queryOne<{ ms: number }>(db, 'select extract(epoch from clock_timestamp())::float8 * 1000 as ms')
  return { leastMs: ms - nowMs(), mostMs: ms - beforeMs }
}
