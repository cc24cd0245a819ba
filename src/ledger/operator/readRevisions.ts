import type { Database } from '../../postgres/database.ts'

/** Reads a text for each of these submissions that is other when it has taken a step, or has been asked for. */
export async function readRevisions(db: Database, ids: readonly string[]): Promise<Map<string, string>> {
  const { rows } = await db.query<{ id: string; version: string }>(
    `select s.id, s.revision || '.' || s.polls as version from outboxd.submission s where s.id = any($1::uuid[])`,
    [ids],
  )
  return new Map(rows.map(({ id, version }) => [id, version]))
}
