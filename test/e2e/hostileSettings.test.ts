import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { check } from '../../src/commands/check.ts'
import { describe } from '../../src/commands/describe.ts'
import { migrate } from '../../src/commands/migrate.ts'
import { status } from '../../src/commands/status.ts'
import { testContext } from '../support/context.ts'
import { createDatabase } from '../support/database.ts'
import { dropRole } from '../support/grantRole.ts'
import { checkout } from '../support/program.ts'
import { setup } from './faults/harness.ts'

/** What `alter role … set` or `alter database … set` can do to our sessions (docs/operations.md). */

const page = readFileSync(join(checkout, 'docs', 'operations.md'), 'utf8')
/** Of the table: a setting, with a value other than the default. */
const hostile = [...page.matchAll(/^\| `(\w+)` \| `([^`]*)` \|/gm)].map(([, name = '', value = '']) => ({
  name,
  value,
}))

test('whatever the role is set to: it migrates, checks, and carries records to their ends', async () => {
  const empty = await createDatabase('template0')
  onTestFinished(() => empty[Symbol.asyncDispose]())
  const { rows } = await empty.pool.query<{ name: string }>('select name from pg_settings')
  const known = new Set(rows.map(({ name }) => name))
  expect(hostile.length).toBeGreaterThan(30)
  const set = hostile.filter(({ name }) => known.has(name))
  const role = `hostile_${randomBytes(4).toString('hex')}`
  await empty.pool.query(`create role ${role} superuser login password 'x'`)
  onTestFinished(() => dropRole(empty.pool, role)) // before the database
  for (const { name, value } of set)
    await empty.pool.query(
      `alter role ${role} set ${name} = ${name === 'search_path' ? value : pg.escapeLiteral(value)}`,
    )
  const as = (url: string) => Object.assign(new URL(url), { username: role, password: 'x' }).href
  const migrating = testContext({ DATABASE_URL: as(empty.url) })
  expect(await migrate(migrating, { outbox: true }), migrating.messages()).toBe(0)

  await using harness = await setup({}, empty.url)
  harness.env.DATABASE_URL = as(harness.env.DATABASE_URL ?? '')
  await harness.start()
  for (const marker of ['one-', 'two-', 'three-']) {
    await harness.insert(marker, { key: 'k' })
    expect(await harness.becomes(marker, 'completed')).toMatchObject({ effects: 1, posts: [200] })
  }
  const checked = testContext(harness.env)
  expect(await check(checked, {}), checked.printed()).toBe(0)
  const { rows: counted } = await harness.pool.query<{ count: string }>(
    `select sum(delta)::text as count from outboxd.state_delta where state = 'completed'`,
  )
  expect(counted).toEqual([{ count: '3' }]) // by a trigger
}, 120_000)

test('triggers that are off for a role which may not turn them on: refused, with what to do', async () => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const role = `replica_${randomBytes(4).toString('hex')}`
  await database.pool.query(
    `create role ${role} login password 'x'; alter role ${role} set session_replication_role = replica`,
  )
  onTestFinished(() => dropRole(database.pool, role))
  const url = Object.assign(new URL(database.url), { username: role, password: 'x' }).href
  const context = testContext({ DATABASE_URL: url })
  await expect(status(context, {})).rejects.toThrow(/session_replication_role is not origin .*alter role … reset/)
})

test('operators and functions of others that fit the catalog’s statements better are never run', async () => {
  const empty = await createDatabase('template0')
  onTestFinished(() => empty[Symbol.asyncDispose]())
  const kinds = [
    'class',
    'proc',
    'procedure',
    'type',
    'role',
    'namespace',
    'oper',
    'operator',
    'config',
    'dictionary',
    'collation',
  ]
  const pairs = kinds.flatMap((kind) => [
    ['oid', `reg${kind}`],
    [`reg${kind}`, 'oid'],
  ])
  await empty.pool.query(`create table calls (query text);
    create function called() returns boolean language plpgsql as $$begin insert into public.calls values (current_query()); return true; end$$;
    create function format(text, text) returns text language sql as $$select 'planted' where public.called()$$;
    create function format(text, text, text) returns text language sql as $$select 'planted' where public.called()$$;
    create function quote_ident(name) returns text language sql as $$select 'planted' where public.called()$$;
    ${pairs
      .map(
        ([a, b]) => `create function planted(${a}, ${b}) returns boolean language sql as 'select public.called()';
          create operator public.= (leftarg = ${a}, rightarg = ${b}, function = planted);
          create operator public.<> (leftarg = ${a}, rightarg = ${b}, function = planted);`,
      )
      .join('')}`)
  const callers = async () => (await empty.pool.query<{ query: string }>('select distinct query from calls')).rows
  const migrating = testContext({ DATABASE_URL: empty.url })
  expect(await migrate(migrating, { outbox: true }), migrating.messages()).toBe(0)
  expect(await callers(), 'migrate --outbox').toEqual([])
  const granting = testContext({ DATABASE_URL: empty.url })
  expect(await migrate(granting, { printGrants: 'someone' }), granting.messages()).toBe(0)
  expect(await callers(), 'migrate --print-grants').toEqual([])
  await using harness = await setup({}, empty.url)
  await harness.start()
  await harness.insert('one-', { key: 'k' })
  expect(await harness.becomes('one-', 'completed')).toMatchObject({ effects: 1 })
  expect(await callers(), 'run').toEqual([])
  const checked = testContext(harness.env)
  expect(await check(checked, {}), checked.printed()).toBe(0)
  expect(await callers(), 'check').toEqual([])
  const described = testContext(harness.env)
  await describe(described, 'outbox', {})
  expect(await callers(), 'describe').toEqual([])
}, 120_000)
