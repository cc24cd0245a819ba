import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { inject } from 'vitest'
import { createDatabaseOn, dropDatabase, openPool } from './postgres.ts'

/** A database of the calling test file's own. */
export interface TestDatabase extends AsyncDisposable {
  /** `postgres://` address with password. */
  readonly url: string
  readonly pool: pg.Pool
}

/**
 * Clones the migrated template (schemas `outboxd` and pg-boss's, table `outbox`), that of a sandbox, or an empty database.
 *
 * @param options more of CREATE DATABASE, such as an encoding
 */
export async function createDatabase(
  from: 'outboxd_template' | 'sandbox_template' | 'template0' = 'outboxd_template',
  options = '',
): Promise<TestDatabase> {
  const server = inject('postgresUrl')
  const name = `test_${randomBytes(6).toString('hex')}`
  // The files as they are take a tenth of the time that Postgres's own way takes, which writes each page to its log.
  const url = await createDatabaseOn(server, name, `template ${from} strategy file_copy ${options}`)
  const pool = openPool(url)
  if (from === 'outboxd_template') await agreeToCopy(pool)
  return {
    url,
    pool,
    async [Symbol.asyncDispose]() {
      await pool.end()
      await dropDatabase(url, server)
    },
  }
}

/** A copy of a ledger is another: nothing would be sent before a daemon has looked at it. */
async function agreeToCopy(pool: pg.Pool): Promise<void> {
  await pool.query(
    'update outboxd.history h set database_oid = n.database_oid, ledger_oid = n.ledger_oid from outboxd.history_now() n',
  )
}
