import { expect, onTestFinished, test } from 'vitest'
import { type MigrateOptions, migrate } from '../../src/commands/migrate.ts'
import { testContext } from '../support/context.ts'
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
