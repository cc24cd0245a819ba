import { expect, onTestFinished, test } from 'vitest'
import { command as migrate } from '../../src/commands/migrate.ts'
import { command as status } from '../../src/commands/status.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { testContext } from '../support/context.ts'
import { daemonEnvironment, startDaemon } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'
import { mappingFiles } from './fixture.ts'

test('--dry-run names the missing migrations and applies none, also as JSON', async () => {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const run = async (options: OptionsOf<typeof migrate>) => {
    const context = testContext({ DATABASE_URL: database.url })
    expect(await migrate.action(context, { ...options, json: true })).toBe(0)
    return { ...JSON.parse(context.printed()), messages: context.messages() }
  }
  const schemas = async () =>
    (await database.pool.query(`select from pg_namespace where nspname in ('outboxd', 'outboxd_jobs')`)).rowCount

  const foreseen = await run({ outbox: true, dryRun: true })
  expect(foreseen).toMatchObject({ dryRun: true, outboxTable: 'outbox' })
  expect(foreseen.messages).toContain('would apply 0001_ledger\n')
  expect(foreseen.messages).toContain('would create the outbox table outbox\n')
  expect(foreseen.messages).toContain('would create the index outbox_new')
  expect(foreseen.messages).toContain('would create the index outbox_captured')
  expect(foreseen.messages).toContain('would create the trigger outbox_wakes_outboxd and its function outboxd_wake')
  expect(await schemas()).toBe(0)

  expect(await run({})).toMatchObject({ dryRun: false, applied: foreseen.applied, outboxTable: null })
  expect(await schemas()).toBe(2)
  expect(await run({ dryRun: true })).toMatchObject({ applied: [] })

  await run({ outbox: true })
  const again = async () => (await run({ outbox: true, dryRun: true })).messages
  expect(await again()).not.toContain('would')
  await database.pool.query('drop index outbox_captured')
  expect((await again()).match(/would .*/g)).toEqual(['would create the index outbox_captured'])
})

test('--outbox leaves a table of the ERP alone, and creates nothing', async () => {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.pool.query(`create table outbox (id bigint primary key, type text, status text default 'draft')`)
  const run = async (options: OptionsOf<typeof migrate>) => {
    const context = testContext({ DATABASE_URL: database.url })
    return { code: await migrate.action(context, options), messages: context.messages() }
  }
  expect(await run({ outbox: true })).toMatchObject({
    code: 2,
    messages: expect.stringMatching(/it lacks key, payload/),
  })
  await database.pool.query('alter table outbox add article text')
  for (const dryRun of [true, false])
    expect(await run({ outbox: true, dryRun })).toMatchObject({
      code: 2,
      messages: expect.stringMatching(/was not made by outboxd \(it has article\).*outboxd describe outbox --write/),
    })
  const { rows } = await database.pool.query(
    `select (select count(*)::int from pg_namespace where nspname = 'outboxd') as schemas,
       (select count(*)::int from pg_index where indrelid = 'outbox'::regclass) as indexes,
       (select count(*)::int from pg_trigger where tgrelid = 'outbox'::regclass) as triggers`,
  )
  expect(rows).toEqual([{ schemas: 0, indexes: 1, triggers: 0 }])
})

test('a daemon, a command and migrate refuse a ledger that a newer version has migrated', async () => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.pool.query(`insert into outboxd.migration (name) values ('9999_years_from_now')`)
  const env = daemonEnvironment(database.url, 'http://127.0.0.1:1')
  const newer =
    /its schema outboxd has migrations of a newer version of outboxd \(9999_years_from_now\)\. Install that version here, too/
  await expect(startDaemon(env)).rejects.toThrow(newer)
  await expect(status.action(testContext(env), {})).rejects.toThrow(newer)
  await expect(migrate.action(testContext(env), {})).rejects.toThrow(newer)
})

test('--print-grants covers the tables that the queries of the mapping files read', async () => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.pool.query(`create schema "Stock"; create table sale (id int primary key, article int);
    create table "Stock"."Article" (id int primary key, name text)`)
  const mappingsDir = mappingFiles({
    'order.yaml': `type: order
endpoint: orders
source: select s.id, a.name from sale s left join "Stock"."Article" a on a.id = s.article where s.id = any($1)
fields: { name: { from: name, type: string } }
body: { name: "\${name}" }`,
  })
  const context = testContext({ DATABASE_URL: database.url, MAPPINGS_DIR: mappingsDir })
  expect(await migrate.action(context, { printGrants: 'daemon', json: true })).toBe(0)
  expect(JSON.parse(context.printed()).outbox).toEqual(
    expect.arrayContaining([
      'grant usage on schema "Stock" to daemon',
      'grant select on "Stock"."Article" to daemon',
      'grant select on public.sale to daemon',
    ]),
  )
})

test('--print-grants covers the tables of documents and of their conditions', async () => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.pool.query(`create table sale (id int primary key); create table sale_line (sale int references sale)`)
  await migrateOutbox(database.url, 'outbox')
  const mappingsDir = mappingFiles({
    'order.yaml': `type: order
endpoint: orders
document: { table: public.sale, key: id, condition: exists (select from sale_line l where l.sale = h.id) }
source: select id from unnest($1::int[]) id
fields: {}
body: { a: b }
`,
  })
  const context = testContext({ DATABASE_URL: database.url, MAPPINGS_DIR: mappingsDir })
  expect(await migrate.action(context, { printGrants: 'daemon', json: true })).toBe(0)
  expect(JSON.parse(context.printed()).outbox).toEqual(
    expect.arrayContaining(['grant select on public.sale to daemon', 'grant select on public.sale_line to daemon']),
  )
})
