import { expect, onTestFinished, test } from 'vitest'
import { Outbox } from '../../src/outbox/outbox.ts'
import { createPool } from '../../src/postgres/database.ts'
import { anyRows, openClaim, setup, tableOf } from './setup.ts'

/** The outbox in a daemon's sessions, which look names up only in the catalog, unless the client's code runs. */
async function asDaemon(given: { ddl: string; path: string; yaml: string }) {
  const { url, pool } = await setup()
  const database = new URL(url).pathname.slice(1)
  await pool.query(`${given.ddl}; alter database ${database} set search_path = ${given.path}`)
  const erp = createPool({ url, name: 'outboxd outbox', connections: 2, onIdleError: () => {}, isErp: true })
  onTestFinished(() => erp.end())
  const outbox = new Outbox(erp, tableOf(given.yaml), 1_000, pool)
  return {
    pool,
    erp,
    outbox,
    /** Claims and marks rows. @returns their ids */
    async take() {
      await using claimed = await openClaim(outbox, anyRows)
      const records = await claimed.readAsManyAsFit()
      const status = { state: 'queued', transactionId: null, errorCode: null, error: null } as const
      const unmarked = await claimed.markReturningUnwrittenIds(
        records.map(({ outboxId, created }) => ({ outboxId, created, ...status })),
      )
      return { ids: records.map(({ outboxId }) => outboxId), unmarked }
    },
  }
}

const yaml = `table: source\nid: id\ntype: { constant: data }\npayload: { columns: [id] }\nstate: { status: status, new: new, queued: taken }`
const columns = `id bigint generated always as identity primary key`

test('a table without the client’s code is used with catalog names only, so planted functions do not run', async () => {
  const { outbox, take, pool } = await asDaemon({
    ddl: `create schema app; create table app.source (${columns}, status text not null default 'new');
      create function app.left(text, integer) returns text language plpgsql as $$begin raise 'planted'; end$$;
      create function app.planted(text, text) returns boolean language plpgsql as $$begin raise 'planted'; end$$;
      create operator app.= (leftarg = text, rightarg = text, function = app.planted)`,
    path: 'app, pg_catalog',
    yaml,
  })
  await pool.query('insert into app.source default values; insert into app.source default values')
  expect(await take()).toEqual({ ids: ['1', '2'], unmarked: [] })
  expect((await outbox.open()).shape).toMatchObject({ qualified: '"app"."source"', hasCustomCode: false })
})

test('the client’s triggers, filters and types use the role’s own search path', async () => {
  const { outbox, take, pool } = await asDaemon({
    ddl: `create extension citext; create schema app; create table app.journal (n bigint);
      create table app.source (${columns}, status citext not null default 'NEW');
      create function app.is_ours(bigint) returns boolean language sql immutable as 'select $1 < 3';
      create function app.note() returns trigger language plpgsql as $$begin insert into journal values (new.id); return new; end$$;
      create trigger note before update on app.source for each row execute function app.note()`,
    path: 'app, public',
    yaml: `${yaml}\nfilter: is_ours(id)`,
  })
  await pool.query('insert into app.source select from generate_series(1, 3)')
  expect(await take()).toEqual({ ids: ['1', '2'], unmarked: [] }) // NEW is new: citext compares without case
  expect((await pool.query('select n::int from app.journal order by n')).rows).toEqual([{ n: 1 }, { n: 2 }])
  expect((await outbox.open()).shape).toMatchObject({ qualified: '"app"."source"', hasCustomCode: true })
})

test.each([
  ['a trigger of updates', `create trigger note before update on source for each row execute function note()`, true],
  [
    'a trigger that sets its search path',
    `create trigger note before update on source for each row execute function closed()`,
    false,
  ],
  ['a trigger of inserts', `create trigger note before insert on source for each row execute function note()`, false],
  ['a check by a function', 'alter table source add check (is_ours(id))', true],
  ['an index by a function', 'create index on source (is_ours(id))', true],
  ['a column of an enum', `create type mood as enum ('new'); alter table source add column mood mood`, true],
  ['a policy', 'alter table source enable row level security; create policy all_rows on source', true],
  [
    'a trigger of a table that inherits',
    `create table heir () inherits (source); create trigger note before update on heir for each row execute function note()`,
    true,
  ],
  [
    'a foreign key and a check of its own',
    `create table other (id bigint primary key); alter table source add column other bigint references other, add check (id > 0)`,
    false,
  ],
])('whether a table with $0 needs the role’s search path: $2', async (_, ddl, isNeeded) => {
  const { pool } = await setup({
    ddl: `create table source (${columns}, status text not null default 'new');
      create function is_ours(bigint) returns boolean language sql immutable as 'select true';
      create function note() returns trigger language plpgsql as 'begin return new; end';
      create function closed() returns trigger language plpgsql set search_path = pg_catalog as 'begin return new; end'; ${ddl}`,
  })
  const outbox = new Outbox(pool, tableOf(`${yaml}\nid_unique: promised`), 1_000, pool)
  const { shape } = await outbox.inspect()
  expect(shape.hasCustomCode).toBe(isNeeded)
})

test('an empty search path finds a table that is named with its schema, and refuses others with what to write', async () => {
  const { take, pool } = await asDaemon({
    ddl: `create table source (${columns}, status text not null default 'new')`,
    path: `''`,
    yaml: `${yaml}\nschema: public\nfilter: id > 0`,
  })
  await pool.query('insert into public.source default values')
  expect(await take()).toEqual({ ids: ['1'], unmarked: [] })
  const { outbox } = await asDaemon({ ddl: `create table source (${columns})`, path: `''`, yaml })
  await expect(outbox.open()).rejects.toThrow('did you mean "public.source"?')
})
