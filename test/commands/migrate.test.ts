import { expect, onTestFinished, test } from 'vitest'
import { type MigrateOptions, migrate } from '../../src/commands/migrate.ts'
import { status } from '../../src/commands/status.ts'
import { testContext } from '../support/context.ts'
import { daemonEnvironment, startDaemon } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'

test('--dry-run names what is missing and applies nothing; --json is for programs', async () => {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const run = async (options: MigrateOptions) => {
    const context = testContext({ DATABASE_URL: database.url })
    expect(await migrate(context, { ...options, json: true })).toBe(0)
    return { ...JSON.parse(context.printed()), messages: context.messages() }
  }
  const schemas = async () =>
    (await database.pool.query(`select from pg_namespace where nspname in ('outboxd', 'pgboss')`)).rowCount

  const foreseen = await run({ outbox: true, dryRun: true })
  expect(foreseen).toMatchObject({ dryRun: true, outboxTable: 'outbox' })
  expect(foreseen.messages).toContain('would apply 0001_ledger\n')
  expect(foreseen.messages).toContain('would create the outbox table outbox')
  expect(await schemas()).toBe(0)

  expect(await run({})).toMatchObject({ dryRun: false, applied: foreseen.applied, outboxTable: null })
  expect(await schemas()).toBe(2)
  expect(await run({ dryRun: true })).toMatchObject({ applied: [] })
})

test('what a newer version has migrated no older one touches: neither a daemon, a command nor its migrate', async () => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.pool.query(`insert into outboxd.migration (name, run_on) values ('9999_years_from_now', now())`)
  const env = daemonEnvironment(database.url, 'http://127.0.0.1:1')
  const newer =
    /its schema outboxd has 9999_years_from_now, of a version newer than this one, .*: run the newer version here, too/
  await expect(startDaemon(env)).rejects.toThrow(newer)
  await expect(status(testContext(env), {})).rejects.toThrow(newer)
  await expect(migrate(testContext(env), {})).rejects.toThrow(newer)
})
