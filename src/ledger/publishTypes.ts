import type { Database } from '../postgres/database.ts'

/** Says which record types an instance knows, once it has given a sign of life; writes only what has changed. */
export async function publishTypes(db: Database, instanceId: string, types: readonly string[]): Promise<void> {
  await db.query('update outboxd.instance set types = $2 where id = $1 and types is distinct from $2::text[]', [
    instanceId,
    types,
  ])
}
