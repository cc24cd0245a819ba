import type { Database } from '../postgres/database.ts'
import { isAlive } from './instanceLife.ts'

/**
 * Says which record types an instance knows, once it has given a sign of life; writes only what has changed.
 *
 * @returns whether it was written
 */
export async function publishTypes(db: Database, instanceId: string, types: readonly string[]): Promise<boolean> {
  const { rowCount } = await db.query(
    'update outboxd.instance set types = $2 where id = $1 and types is distinct from $2::text[]',
    [instanceId, types],
  )
  return rowCount === 1
}

/** The record types that some living instance knows; null where one, of an older version, does not say. */
export async function readPublishedTypes(db: Database): Promise<string[] | null> {
  const { rows } = await db.query<{ types: string[] | null }>(
    `select types from outboxd.instance i where ${isAlive('i')}`,
  )
  const types = rows.map((row) => row.types)
  return types.every((each) => each !== null) ? [...new Set(types.flat())] : null
}
