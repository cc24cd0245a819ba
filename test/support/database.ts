import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { inject } from 'vitest'
import { createDatabaseOn, dropDatabase, openPool } from './postgres.ts'

/** A database for one test file. */
export interface TestDatabase extends AsyncDisposable {
  /** `postgres://` URL with password. */
  readonly url: string
  readonly pool: pg.Pool
}

/**
 * Clones the migrated template (schemas `outboxd` and `outboxd_jobs`, table `outbox`), a sandbox's, or an empty database.
 *
 * @param options more of CREATE DATABASE, such as an encoding
 */
export async function createDatabase(
  from: 'outboxd_template' | 'sandbox_template' | 'template0' = 'outboxd_template',
  options = '',
): Promise<TestDatabase> {
  const server = inject('postgresUrl')
  const name = `test_${randomBytes(6).toString('hex')}`
  // Copying files takes a tenth of the time of Postgres's default, which writes each page to its log.
  const url = await createDatabaseOn(server, name, `template ${from} strategy file_copy ${options}`)
  const pool = openPool(url)
  if (from === 'outboxd_template') await writeIdentity(pool)
  return {
    url,
    pool,
    async [Symbol.asyncDispose]() {
      await pool.end()
      await dropDatabase(url, server)
    },
  }
}

/** Writes the ledger's identity, as the first heartbeat of a daemon does. */
async function writeIdentity(pool: pg.Pool): Promise<void> {
  await pool.query(
    `update outboxd.ledger l set system_id = n.system_id, timeline = n.timeline, database_oid = n.database_oid,
       table_oid = n.table_oid from outboxd.history(null, null, null) n`,
  )
}
