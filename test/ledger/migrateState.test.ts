import type pg from 'pg'
import { expect, onTestFinished, type TestContext, test } from 'vitest'
import { migrateLedger } from '../../src/ledger/migrations.ts'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { createDatabase } from '../support/database.ts'
import { migrationNames, migrationText } from '../support/measureMigration.ts'
import { until } from '../support/until.ts'

/** A migrated database in which another session holds a lock on a table. */
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
  ['the ledger', 'outboxd.migration', migrateLedger, 'STATE_DATABASE_URL'],
  // Only a change of the table needs a lock on it: here, to remove the trigger.
  ['the outbox', 'outbox', (url: string) => migrateOutbox(url, 'outbox', false), 'DATABASE_URL'],
])('a migration that meets a lock on a table of %s gives up and names the lock’s holder', async ([
  ,
  table,
  migrate,
  variable,
], context) => {
  const url = await locked(table, context)
  await expect(migrate(url)).rejects.toThrow(
    new RegExp(`the database of ${variable} .* another session held a lock .* pg_terminate_backend\\(\\d+\\)`),
  )
})

test('after a deadlock with a running daemon neither is lost: the migration is applied when the daemon is through', async () => {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool, url } = database
  await applyBefore(pool, '0008_passage')
  const daemon = await pool.connect()
  onTestFinished(() => daemon.release(true))
  await daemon.query(`set deadlock_timeout = '1min'; begin; lock table outboxd.submission in row exclusive mode`)
  const migrated = migrateLedger(url)
  migrated.catch(() => {}) // awaited below
  // 0008 has changed the table of pauses, and waits to change that of submissions.
  await until(
    async () =>
      (await pool.query(`select from pg_locks where relation = 'outboxd.submission'::regclass and not granted`))
        .rowCount,
    (waiting) => waiting === 1,
  )
  await daemon.query('select from outboxd.pause')
  await daemon.query('commit')
  expect((await migrated)[0]).toBe('0008_passage')
})

/** Applies to an empty database all migrations before the named one. */
async function applyBefore(pool: pg.Pool, name: string): Promise<void> {
  await pool.query(`create schema outboxd; create table outboxd.migration
    (id serial primary key, name varchar(255) not null, run_on timestamp not null)`)
  for (const each of migrationNames.filter((one) => one < name)) {
    await pool.query(migrationText(each))
    await pool.query('insert into outboxd.migration (name, run_on) values ($1, now())', [each])
  }
}
