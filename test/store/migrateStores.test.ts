import { expect, type TestContext, test } from 'vitest'
import { migrateOutbox, migrateState } from '../../src/store/migrateStores.ts'
import { createDatabase } from '../support/database.ts'

/** A migrated database in which somebody holds a lock on a table. */
async function locked(table: string, { onTestFinished }: TestContext): Promise<string> {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const client = await database.pool.connect()
  await client.query(`begin; lock table ${table} in access exclusive mode`)
  onTestFinished(async () => {
    await client.query('rollback')
    client.release()
  })
  return database.url
}

test.concurrent.for<[name: string, table: string, migrate: (url: string) => Promise<unknown>, variable: string]>([
  ['the ledger', 'outboxd.migration', migrateState, 'STATE_DATABASE_URL'],
  // Only what changes the table needs a lock on it: here, to take the trigger away.
  ['the outbox', 'outbox', (url: string) => migrateOutbox(url, 'outbox', false), 'DATABASE_URL'],
])('a lock on %s: nobody waits behind the migration for long, and it says what is in the way', async ([
  ,
  table,
  migrate,
  variable,
], context) => {
  const url = await locked(table, context)
  await expect(migrate(url)).rejects.toThrow(
    new RegExp(`the database of ${variable} .* another session has held a lock .* pg_stat_activity`),
  )
})
