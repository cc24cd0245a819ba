import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { findRowSecurityProblemClauses } from '../../src/outbox/findTableProblems.ts'
import { standardOutboxTable } from '../../src/outbox/outboxTable.ts'
import { tryWriteBack } from '../../src/outbox/tryWriteBack.ts'
import { exampleDdl } from '../support/exampleDdl.ts'
import { type Setup, setup } from './setup.ts'

async function withRow(): Promise<Setup> {
  const given = await setup()
  await given.pool.query(`insert into outbox (type, payload) values ('data', '{}')`)
  return given
}

const everything = async ({ pool }: Setup) => (await pool.query('select * from outbox order by id')).rows

test('the trial writes each state that a record may get to one row, and leaves the row unchanged', async () => {
  const given = await withRow()
  const before = await everything(given)
  await given.pool.query(`create function note() returns trigger language plpgsql as $$ begin
      perform nextval('told'); return new; end $$;
    create sequence told; create trigger note before update on outbox for each row execute function note()`)
  expect(await tryWriteBack(given.outbox)).toEqual({ kind: 'tried', outboxId: '1', refusals: [] })
  expect(await everything(given)).toEqual(before)
  expect((await given.pool.query('select last_value::int as n from told')).rows).toEqual([{ n: 8 }])
})

test('a state that the table refuses is reported with the error, and the other states are still tried', async () => {
  const given = await withRow()
  await given.pool.query(`alter table outbox add constraint known check (status <> 'rejected');
    create function meddle() returns trigger language plpgsql as $$ begin
      if new.status = 'failed' then return null; end if;
      if new.status = 'completed' and old.status <> 'accepted' then raise exception 'not in order'; end if;
      return new; end $$;
    create trigger meddle before update on outbox for each row execute function meddle()`)
  expect(await tryWriteBack(given.outbox)).toEqual({
    kind: 'tried',
    outboxId: '1',
    refusals: [
      { state: 'rejected', why: expect.stringMatching(/^SQLSTATE 23514: .*"known"/) },
      { state: 'failed', why: expect.stringContaining('changes nothing') },
    ],
  })
})

test('a constraint that is checked at the commit is tried, too', async () => {
  const given = await withRow()
  await given.pool.query(`create function refuse() returns trigger language plpgsql as $$
    begin if new.status = 'completed' then raise exception 'at the end'; end if; return new; end $$;
    create constraint trigger refuse after update on outbox deferrable initially deferred for each row execute function refuse()`)
  expect(await tryWriteBack(given.outbox)).toMatchObject({
    refusals: [{ state: 'completed', why: 'SQLSTATE P0001: at the end' }],
  })
})

test('the trial does not wait for a locked row', async () => {
  const given = await withRow()
  const form = await given.connect()
  await form.query('begin; select from outbox for update')
  expect(await tryWriteBack(given.outbox)).toEqual({ kind: 'no-row' })
  await form.query('delete from outbox; commit')
  expect(await tryWriteBack(given.outbox)).toEqual({ kind: 'no-row' })
})

test('a table that is only read is not written to', async () => {
  const { outbox } = await setup({
    ddl: 'create table message (id int generated always as identity primary key); insert into message select',
    yaml: 'table: message\nid: id\ntype: { constant: data }\npayload: { columns: [id] }\nstate: none\nsequence: id',
  })
  expect(await tryWriteBack(outbox)).toEqual({ kind: 'never-written' })
})

test('row-level security without a policy for our updates is refused before anything is read', async () => {
  const given = await setup()
  const role = `clerk_${new URL(given.url).pathname.slice(6)}`
  await given.pool.query(`create role ${role}; grant select, update on outbox to ${role}; grant usage on schema outboxd to ${role};
    grant select on all tables in schema outboxd to ${role};
    alter table outbox enable row level security; create policy see on outbox for select using (true)`)
  const clerk = await given.connect()
  await clerk.query(`set role ${role}`)
  const find = () => findRowSecurityProblemClauses(clerk, 'outbox', standardOutboxTable('outbox'))
  expect(await find()).toEqual([expect.stringMatching(new RegExp(`no policy lets ${role} update rows: create policy`))])
  await given.pool.query(`create policy write on outbox for update to ${role} using (true)`)
  expect(await find()).toEqual([])
  await clerk.query(`reset role`)
  await given.pool.query(`drop owned by ${role}; drop role ${role}`)
})

test('check reported the example sales_order, whose rows are marked only at the end, as a problem', async () => {
  const yaml = readFileSync('mappings/examples/sales_order.yaml', 'utf8')
  const { pool, outbox } = await setup({ ddl: exampleDdl.salesOrder, yaml })
  await pool.query(
    `insert into sales_order (customer_no, status, net_amount, ordered_at) values ('C1', 'released', 1, now())`,
  )
  expect(await tryWriteBack(outbox)).toEqual({ kind: 'tried', outboxId: '1', refusals: [] })
  await pool.query('alter table sales_order add check (synced_at is null)')
  expect(await tryWriteBack(outbox)).toMatchObject({ refusals: [{ state: 'completed' }] })
})

test('a trigger that changes what identifies the row is found', async () => {
  const given = await setup({
    ddl: `create table source (id bigint generated always as identity primary key, amount int, changed_at timestamptz default now(),
        synced_at timestamptz, sync_error text);
      create function touch() returns trigger language plpgsql as $$ begin new.changed_at := clock_timestamp(); return new; end $$;
      create trigger touch before update on source for each row execute function touch()`,
    yaml: `table: source\nid: id\ntype: { constant: data }\ncreated_at: changed_at\npayload: { columns: all }
state: { timestamp: synced_at, set: [completed] }\nwrite: { sync_error: { what: error, on: [failed] } }`,
  })
  await given.pool.query('insert into source (amount) values (1)')
  const why = expect.stringContaining('by which outboxd recognises the row')
  expect(await tryWriteBack(given.outbox)).toMatchObject({
    kind: 'tried',
    refusals: expect.arrayContaining([
      { state: 'completed', why },
      { state: 'failed', why },
    ]),
  })
  const named = given.describedAs(`table: source\nid: id\ntype: { constant: data }\npayload: { columns: all }
state: { timestamp: synced_at, set: [completed] }\nwrite: { sync_error: { what: error, on: [failed] } }`)
  expect(await tryWriteBack(named.outbox)).toMatchObject({ kind: 'tried', refusals: [] })
})

test('a trigger that removes the mark, or a view that ignores it, is found', async () => {
  const yaml = (state: string) =>
    `table: source\nid: id\nid_unique: promised\ntype: { constant: data }\npayload: { columns: [amount] }\nstate: ${state}`
  const columns = '(id bigint primary key, amount int, done boolean default false, done_at timestamptz)'
  const flag = yaml('{ flag: done, set: [queued] }')
  const table = await setup({
    ddl: `create table source ${columns}; insert into source values (1, 1);
      create function redo() returns trigger language plpgsql as $$ begin
        update source set done = false where id = new.id; return null; end $$;
      create trigger redo after update on source for each row when (pg_trigger_depth() = 0) execute function redo()`,
    yaml: flag,
  })
  const refusals = ['rejected', 'queued'].map((state) => ({ state, why: expect.stringContaining('still waits') }))
  expect(await tryWriteBack(table.outbox)).toMatchObject({ kind: 'tried', refusals })
  const view = await setup({
    ddl: `create table base ${columns}; insert into base values (1, 1); create view source as select * from base;
      create function ignore() returns trigger language plpgsql as $$ begin return new; end $$;
      create trigger ignore instead of update on source for each row execute function ignore()`,
    yaml: flag,
  })
  expect(await tryWriteBack(view.outbox)).toMatchObject({ kind: 'tried', refusals })
})

test('`check` finds a trigger that sets the column back which shows that a row ended', async () => {
  const { pool, outbox } = await setup({
    ddl: 'create table source (id bigint primary key, sent timestamptz); insert into source values (1)',
    yaml: `table: source\nid: id\ntype: { constant: data }\npayload: { columns: [id] }\nstate: { timestamp: sent, set: [completed] }`,
  })
  expect(await tryWriteBack(outbox)).toMatchObject({ refusals: [] })
  await pool.query(`create function redo() returns trigger language plpgsql as $$ begin new.sent := old.sent; return new; end $$;
    create trigger redo before update on source for each row execute function redo()`)
  expect(await tryWriteBack(outbox)).toMatchObject({
    refusals: [{ state: 'completed', why: expect.stringContaining('sets the state back') }],
  })
})

test('a timestamp without its own mark for `rejected` is not a problem', async () => {
  const { pool, outbox } = await setup({
    ddl: 'create table source (id bigint primary key, done_at timestamptz, trouble text); insert into source values (1)',
    yaml: `table: source\nid: id\ntype: { constant: data }\npayload: { columns: [id] }
state: { timestamp: done_at, set: [queued] }\nwrite: { trouble: { what: error, on: [rejected] } }`,
  })
  expect(await tryWriteBack(outbox)).toEqual({ kind: 'tried', outboxId: '1', refusals: [] })
  await pool.query('alter table source add check (done_at is null)')
  expect(await tryWriteBack(outbox)).toMatchObject({ refusals: [{ state: 'queued' }] })
})
