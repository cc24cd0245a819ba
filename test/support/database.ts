import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

/** A database of the calling test file's own. */
export interface TestDatabase extends AsyncDisposable {
  /** `postgres://` address with password. */
  readonly url: string
  readonly pool: pg.Pool
}

/**
 * Clones the migrated template (schemas `outboxd` and pg-boss's, table `outbox`), or an empty database.
 *
 * @param options more of CREATE DATABASE, such as an encoding
 */
export async function createDatabase(
  from: 'outboxd_template' | 'template0' = 'outboxd_template',
  options = '',
): Promise<TestDatabase> {
  const server = inject('postgresUrl')
  const name = `test_${randomBytes(6).toString('hex')}`
  await asSuperuser(server, `create database ${name} template ${from} ${options}`)
  const url = new URL(server)
  url.pathname = name
  const pool = new pg.Pool({ connectionString: url.href, max: 10 })
  pool.on('error', () => {}) // a test that terminates backends reads the consequence elsewhere
  return {
    url: url.href,
    pool,
    async [Symbol.asyncDispose]() {
      await pool.end()
      await asSuperuser(server, `drop database if exists ${name} with (force)`)
    },
  }
}

async function asSuperuser(server: string, statement: string): Promise<void> {
  const client = new pg.Client(server)
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
