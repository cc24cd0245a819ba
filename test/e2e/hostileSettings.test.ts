import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { command as check } from '../../src/commands/check.ts'
import { command as describe } from '../../src/commands/describe.ts'
import { command as migrate } from '../../src/commands/migrate.ts'
import { command as status } from '../../src/commands/status.ts'
import { testContext } from '../support/context.ts'
import { createDatabase } from '../support/database.ts'
import { dropRole } from '../support/grantRole.ts'
import { setup } from './faults/harness.ts'
import { harmlessSettings, overriddenSettings } from './hostileSettingsTable.ts'

/** Settings by `alter role … set` or `alter database … set`, which affect our sessions. */

const hostile = Object.entries({ ...overriddenSettings, ...harmlessSettings }).map(([name, value]) => ({ name, value }))

test('with hostile settings of its role, outboxd migrates, checks and completes records', async () => {
  const empty = await createDatabase('template0')
  onTestFinished(() => empty[Symbol.asyncDispose]())
  const { rows } = await empty.pool.query<{ name: string }>('select name from pg_settings')
  const known = new Set(rows.map(({ name }) => name))
  expect(hostile.length).toBeGreaterThan(30)
  const set = hostile.filter(({ name }) => known.has(name))
  const role = `hostile_${randomBytes(4).toString('hex')}`
  await empty.pool.query(`create role ${role} superuser login password 'x'`)
  onTestFinished(() => dropRole(empty.pool, role)) // before the database is dropped
  for (const { name, value } of set)
    await empty.pool.query(
      `alter role ${role} set ${name} = ${name === 'search_path' ? value : pg.escapeLiteral(value)}`,
    )
  const as = (url: string) => Object.assign(new URL(url), { username: role, password: 'x' }).href
  const migrating = testContext({ DATABASE_URL: as(empty.url) })
  expect(await migrate.action(migrating, { outbox: true }), migrating.messages()).toBe(0)

  await using harness = await setup({}, empty.url)
  harness.env.DATABASE_URL = as(harness.env.DATABASE_URL ?? '')
  await harness.start()
  for (const marker of ['one-', 'two-', 'three-']) {
    await harness.insert(marker, { key: 'k' })
    expect(await harness.becomes(marker, 'completed')).toMatchObject({ effects: 1, posts: [200] })
  }
  const checked = testContext(harness.env)
  expect(await check.action(checked, {}), checked.printed()).toBe(0)
  const { rows: counted } = await harness.pool.query<{ count: string }>(
    `select sum(delta)::text as count from outboxd.state_delta where state = 'completed'`,
  )
  expect(counted).toEqual([{ count: '3' }]) // counted by a trigger
})

test('a role with triggers turned off, which may not turn them on, is refused with what to do', async () => {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const role = `replica_${randomBytes(4).toString('hex')}`
  await database.pool.query(
    `create role ${role} login password 'x'; alter role ${role} set session_replication_role = replica`,
  )
  onTestFinished(() => dropRole(database.pool, role))
  const url = Object.assign(new URL(database.url), { username: role, password: 'x' }).href
  const context = testContext({ DATABASE_URL: url })
  await expect(status.action(context, {})).rejects.toThrow(
    /session_replication_role is not origin .*alter role … reset/,
  )
})

test('planted operators and functions that fit better than the catalog’s are never run', async () => {
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
  expect(await migrate.action(migrating, { outbox: true }), migrating.messages()).toBe(0)
  expect(await callers(), 'migrate --outbox').toEqual([])
  const granting = testContext({ DATABASE_URL: empty.url })
  expect(await migrate.action(granting, { printGrants: 'someone' }), granting.messages()).toBe(0)
  expect(await callers(), 'migrate --print-grants').toEqual([])
  await using harness = await setup({}, empty.url)
  await harness.start()
  await harness.insert('one-', { key: 'k' })
  expect(await harness.becomes('one-', 'completed')).toMatchObject({ effects: 1 })
  expect(await callers(), 'run').toEqual([])
  const checked = testContext(harness.env)
  expect(await check.action(checked, {}), checked.printed()).toBe(0)
  expect(await callers(), 'check').toEqual([])
  const described = testContext(harness.env)
  await describe.action(described, 'outbox', {})
  expect(await callers(), 'describe').toEqual([])
})

/**
 * Creates namesakes of Postgres's polymorphic functions and operators for types that fit better, and of operators
 * between types that need a cast.
 */
const plantNamesakes = `
  create table public.calls (name text, query text);
  create function public.called(name text) returns void language plpgsql as
    $$begin insert into public.calls values (name, pg_catalog.current_query()); end$$;
  grant all on public.calls to public;
  do $do$
  declare
    f record; fitting text[]; types text; returned text;
    exact text[] := '{text,varchar,bpchar,name,"\\"char\\"",oid,integer,bigint,regclass,bytea,boolean}';
    a text; b text; op text;
  begin
    for f in
      select distinct p.proname, p.pronargs, pg_catalog.oidvectortypes(p.proargtypes) as args, pg_catalog.format_type(p.prorettype, null) as result, p.proretset
      from pg_catalog.pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind in ('f', 'a') and p.provariadic = 0
        and p.proargtypes::oid[] && array['anyelement', 'anyarray', 'anynonarray', 'anycompatible', 'anycompatiblearray', '"any"', 'numeric', 'double precision', 'bigint', 'text', 'json', 'jsonb', 'record']::regtype[]::oid[]
        and p.proname !~ '^(array_|json|text|name|int|float|numeric|byte|varchar|bpchar|bool|oid|char|hash|date|time|interval|enum|range|multirange|xml|bt|gin|gist|brin|spg|domain|record|any|pg_(get|stat|logical|replication|ls|read|backup|wal|create|drop|copy|promote|log|rotate|reload|switch|export|import|sync|char|current|control|identify|partition|restore|clear|set_attribute))'
    loop
      foreach fitting slice 1 in array array[['text', 'text[]'], ['varchar', 'varchar[]'], ['name', 'name[]'], ['integer', 'integer[]'], ['oid', 'oid[]'], ['bigint', 'bigint[]']] loop
        types := pg_catalog.regexp_replace(f.args, '\\m(anynonarray|anyelement|anycompatible)\\M(?!array)|"any"|\\mnumeric\\M|double precision|\\mbigint\\M|\\mtext\\M|\\mjsonb?\\M|\\mrecord\\M', fitting[1], 'g');
        types := pg_catalog.regexp_replace(types, '\\m(anyarray|anycompatiblearray)\\M', fitting[2], 'g');
        begin
          execute pg_catalog.format('create function public.%I(%s) returns text language plpgsql as $f$begin perform public.called(%L); return null; end$f$', f.proname, types, f.proname || '(' || types || ')');
        exception when others then null;
        end;
      end loop;
    end loop;
    foreach a in array exact loop
      foreach b in array exact loop
        execute pg_catalog.format('create function public.planted_op(%s, %s) returns boolean language plpgsql as $f$begin perform public.called(%L); return null; end$f$', a, b, a || ' operator ' || b);
        foreach op in array array['=', '<>', '<', '<=', '>', '>=', '~', '!~', '~~', '||', '&', '+', '-', '*'] loop
          begin
            execute pg_catalog.format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.planted_op)', op, a, b);
          exception when others then null;
          end;
        end loop;
      end loop;
    end loop;
    foreach a in array array['text[]', 'name[]', 'integer[]', 'oid[]', 'bigint[]'] loop
      execute pg_catalog.format('create function public.planted_op(%s, %s) returns boolean language plpgsql as $f$begin perform public.called(%L); return null; end$f$', a, a, a || ' operator ' || a);
      foreach op in array array['=', '<>', '&&', '@>', '<@', '||'] loop
        execute pg_catalog.format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.planted_op)', op, a, a);
      end loop;
    end loop;
  end $do$;`

test('no session on the ledger or the standard outbox runs namesakes that another role made in the search path', async () => {
  const empty = await createDatabase('template0')
  onTestFinished(() => empty[Symbol.asyncDispose]())
  const role = `owner_${randomBytes(4).toString('hex')}`
  await empty.pool.query(`create role ${role} login password 'x'`)
  onTestFinished(() => dropRole(empty.pool, role))
  await empty.pool.query(`do $$begin execute format('grant create on database %I to ${role}', current_database()); end$$;
    grant create on schema public to ${role}`)
  await empty.pool.query(plantNamesakes)
  const { rows: planted } = await empty.pool.query<{ n: number }>(
    `select pg_catalog.count(*)::integer as n from pg_catalog.pg_proc where pronamespace operator(pg_catalog.=) 'public'::pg_catalog.regnamespace::pg_catalog.oid`,
  )
  expect(planted[0]?.n).toBeGreaterThan(300)
  const callers = async () =>
    (await empty.pool.query<{ name: string; query: string }>('select distinct name, query from calls')).rows
  const as = (url: string) => Object.assign(new URL(url), { username: role, password: 'x' }).href
  const migrating = testContext({ DATABASE_URL: as(empty.url) })
  const code = await migrate.action(migrating, { outbox: true }).catch((error: unknown) => String(error))
  expect(await callers(), 'migrate').toEqual([])
  expect(code, migrating.messages()).toBe(0)
  await using harness = await setup({}, empty.url)
  harness.env.DATABASE_URL = as(harness.env.DATABASE_URL ?? '')
  await empty.pool.query(`alter table outbox owner to ${role}`)
  await harness.start()
  await harness.insert('one-', { key: 'k' })
  expect(await harness.becomes('one-', 'completed')).toMatchObject({ effects: 1 })
  expect(await callers(), 'run').toEqual([])
  const checked = testContext(harness.env)
  const checkedCode = await check.action(checked, {})
  expect(await callers(), 'check').toEqual([])
  expect(checkedCode, checked.printed()).toBe(0)
  const told = testContext(harness.env)
  await status.action(told, {})
  expect(await callers(), 'status').toEqual([])
  const described = testContext(harness.env)
  await describe.action(described, 'outbox', {})
  expect(await callers(), 'describe').toEqual([])
})
