import { expect, onTestFinished, test } from 'vitest'
import { command as check } from '../../src/commands/check.ts'
import { findCollationChange } from '../../src/postgres/collationVersion.ts'
import { testContext } from '../support/context.ts'
import { daemonEnvironment } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'
import { migrateAll } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'

test('a sort order that has changed since the database was created is a warning', async () => {
  const database = await createDatabase('template0', `locale_provider icu icu_locale 'en' locale 'C'`)
  onTestFinished(() => database[Symbol.asyncDispose]())
  await migrateAll(database.url)
  expect(await findCollationChange(database.pool)).toBeNull()
  await database.pool.query(`update pg_database set datcollversion = '1' where datname = current_database()`)
  expect(await findCollationChange(database.pool)).toMatch(
    /collation version 1, now [\d.]+.*alter database test_\w+ refresh collation version/,
  )
  const context = testContext({ DATABASE_URL: database.url })
  await check.action(context, {})
  expect(context.printed()).toMatch(/WARNING {2}ledger: the sort order of texts has changed/)
  const daemon = startProgram({ args: ['run'], env: daemonEnvironment(database.url, 'http://127.0.0.1:9') })
  onTestFinished(async () => {
    await daemon.stop()
  })
  expect(await daemon.line((line) => line.includes('sort order'))).toMatch(/"level":"warn".*the sort order of texts/)
})

test('a collation of an index whose sort order has changed is a warning, too', async () => {
  const database = await createDatabase('template0', `locale 'C'`)
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.pool.query(`create collation german (provider = icu, locale = 'de');
    create collation unused (provider = icu, locale = 'en');
    create table sale (number text collate german primary key);
    update pg_collation set collversion = '1' where collname in ('german', 'unused')`)
  expect(await findCollationChange(database.pool)).toMatch(
    /collation version 1, now [\d.]+.*then run: alter collation public\.german refresh version$/,
  )
})
