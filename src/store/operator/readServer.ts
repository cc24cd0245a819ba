import type { Database } from '../database.ts'

/** The server's version, such as `18.1`. */
export async function readServerVersion(db: Database): Promise<string> {
  const { rows } = await db.query<{ version: string }>(`select current_setting('server_version') as version`)
  return rows[0]?.version ?? 'unknown'
}
