import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { SourceQuery } from '../../../src/mapping/mapping.ts'
import { Outbox } from '../../../src/outbox/outbox.ts'
import { readRecordContentsThatFit } from '../../../src/outbox/readRecordContents.ts'
import { asInstaller, captureFile, installCapture } from '../../support/changeCapture.ts'
import { createDatabase } from '../../support/database.ts'
import { openPool } from '../../support/postgres.ts'
import { noted, setup, setupSale, trouble } from './setupChangeCapture.ts'

test('an outbox row has the table, id and type of its document, and the document’s id as key', async () => {
  const { pool, captured } = await setup({ tables: 'create table sale (id bigint primary key, state text)' })
  await pool.query(`insert into sale values (9007199254740993, 'draft')`)
  expect(await captured()).toEqual([
    { type: 'order', key: '9007199254740993', payload: '{"id": 9007199254740993, "document": "public.sale"}' },
  ])
})

describe('one transaction is one row for each document', () => {
  const isolations = ['read committed', 'repeatable read', 'serializable']
  const changes: [string, string, string[]][] = [
    [
      'a header and ten lines',
      `insert into sale values (1, 'a'); insert into line select n, 1 from generate_series(1, 10) n; update sale set state = 'b' where id = 1`,
      ['1'],
    ],
    ['only a line', 'insert into line values (100, 9)', ['9']],
    ['a line that is changed', 'update line set amount = 5 where id = 90', ['9']],
    ['a line that is deleted', 'delete from line where id = 90', ['9']],
    ['a line that moves changes both documents', 'update line set sale = 8 where id = 90', ['8', '9']],
    ['a line that loses its document', 'update line set sale = null where id = 90', ['9']],
    ['a line without a document', 'insert into line values (100, null); delete from line where id = 100', []],
    ['a statement that changes no row', 'update sale set state = state where false; delete from line where false', []],
    [
      'a savepoint that is rolled back takes its note with it',
      `savepoint a; update sale set state = 'b' where id = 9; rollback to a; update sale set state = 'c' where id = 9`,
      ['9'],
    ],
    [
      'a savepoint that is released keeps it',
      `savepoint a; update sale set state = 'b' where id = 9; release a; update line set amount = 6`,
      ['9'],
    ],
    [
      'a note before a savepoint that is rolled back',
      `update sale set state = 'b' where id = 9; savepoint a; update line set amount = 6; rollback to a; update line set amount = 7`,
      ['9'],
    ],
    [
      'a rolled back statement of an exception block',
      `do $$begin update sale set state = 'b'; raise 'x'; exception when others then update line set amount = 1; end$$`,
      ['9'],
    ],
    ['a deleted header whose lines go by cascade', 'delete from sale where id = 9', ['9']],
    ['a changed id of a header, which its lines follow', 'update sale set id = 7 where id = 9', ['7', '9']],
    [
      'an upsert, a MERGE and a COPY',
      `insert into line values (90, 8), (91, 9) on conflict (id) do update set sale = excluded.sale;
      merge into line using (values (90), (92)) v(id) on v.id = line.id when matched then delete when not matched then insert values (v.id, 8);
      copy line (id, sale) from program 'printf "95\\t8\\n"'`,
      ['8', '9'],
    ],
  ]
  test.each(
    isolations.flatMap((isolation) => changes.map(([what, sql, ids]) => [isolation, what, sql, ids] as const)),
  )('a header and its lines in one transaction (%s, %s): one row', async (isolation, _, sql, ids) => {
    const { pool, ids: capturedIds } = await setupSale()
    await pool.query(`begin isolation level ${isolation}; ${sql}; commit`)
    expect((await capturedIds()).sort()).toEqual(ids)
    expect(await noted(pool)).toEqual([])
  })

  test('each transaction writes one row per document, also for documents that had rows before', async () => {
    const { pool, ids } = await setupSale()
    await pool.query(`begin; update sale set state = 'b'; update sale set state = 'c'; commit`)
    await pool.query(`update sale set state = 'd'`)
    expect(await ids()).toEqual(['9', '9'])
    await pool.query(`insert into sale values (1), (2); truncate outbox`)
    await pool.query(`begin; update sale set state = 'e' where id = 1; update sale set state = 'f'; commit`)
    expect((await ids()).sort()).toEqual(['1', '2', '9'])
  })

  test('5,000 documents change at once: one insert per statement', async () => {
    const { pool } = await setupSale()
    await pool.query(
      `begin; insert into sale select n from generate_series(1000, 5999) n; update sale set state = 'b' where id > 999; commit`,
    )
    const { rows } = await pool.query(`select count(*)::int as n, count(distinct payload ->> 'id')::int as documents,
      count(distinct cmin::text)::int as statements from outbox`)
    expect(rows).toEqual([{ n: 9_500, documents: 5_000, statements: 2 }])
    const order = await pool.query(`select bool_and(id > before) as ordered from (select (payload ->> 'id')::int as id,
      lag((payload ->> 'id')::int) over (order by id) as before from outbox limit 5000) each`)
    expect(order.rows).toEqual([{ ordered: true }])
  })

  test.each([
    ['text', `'a b'`, `'b'`],
    ['text', `'7'`, `'''7'`],
    ['varchar(40)', `'é'`, `''`],
    ['char(8)', `'ab'`, `'a'`],
    ['uuid', `'00000000-0000-4000-8000-000000000001'`, `'00000000-0000-4000-8000-000000000002'`],
    ['smallint', '1', '11'],
    ['numeric(8, 2)', '1', '11'],
    ['amount_code', '1', '11'],
    ['code', '1', '2'],
  ])('a primary key of type %s', async (type, one, other) => {
    const { pool, ids } = await setup({
      tables: `create domain code as int check (value > 0); create domain amount_code as numeric(6, 3); create table sale (id ${type} primary key, state text);
        create table line (id int primary key, sale ${type})`,
      options: `children => '{line.sale}'`,
    })
    await pool.query(
      `begin; insert into sale values (${other}), (${one}); insert into line values (1, ${one}), (2, ${other}); update sale set state = 'a'; commit`,
    )
    const { rows } = await pool.query(`select id::text from sale order by 1`)
    expect((await ids()).sort()).toEqual(rows.map(({ id }) => id).sort())
  })

  test('sessions that write the same documents neither wait for nor fail by each other, at any isolation level', async () => {
    const { pool, ids } = await setupSale()
    await pool.query(`insert into sale values (1), (2); truncate outbox`)
    const sessions = await Promise.all([pool.connect(), pool.connect()])
    onTestFinished(() => sessions.forEach((session) => void session.release(true)))
    for (const isolation of isolations) {
      for (const session of sessions)
        await session.query(`begin isolation level ${isolation}; set local lock_timeout = '100ms'`)
      // Both add a line to both documents.
      for (const sale of [1, 2])
        for (const [at, session] of sessions.entries())
          await session.query(`insert into line values (${sale * 10 + at}, ${sale})`)
      for (const session of sessions) await session.query('commit')
      await pool.query('delete from line where id > 9')
    }
    expect((await ids()).filter((id) => id === '1')).toHaveLength(3 * 3)
    expect(await noted(pool)).toEqual([])
  })

  test('serializable transactions that note changes at once do not make each other fail', async () => {
    const { pool } = await setupSale()
    await pool.query('alter table outbox rename to away')
    const sessions = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
    onTestFinished(() => sessions.forEach((session) => void session.release(true)))
    for (const session of sessions) await session.query('begin isolation level serializable')
    for (const [at, session] of sessions.entries()) await session.query(`insert into sale values (${at})`)
    for (const session of sessions) await session.query('commit')
    expect(await noted(pool)).toHaveLength(3)
  })
})

describe('install', () => {
  test('keeps `key`, `payload` and the condition', async () => {
    const { pool, captured } = await setup({
      tables: 'create table item (id int primary key, customer_no text, amount numeric, note json)',
      document: 'item',
      options: `key => 'customer_no', payload => '{customerId, customer_no, amount, amount}', condition => $$n.amount > 0$$`,
    })
    await pool.query(`insert into item values (1, 'C1', 5), (2, null, 5)`)
    expect(await captured()).toEqual([
      { type: 'order', key: 'C1', payload: '{"id": 1, "document": "public.item"}' },
      { type: 'order', key: '2', payload: '{"id": 2, "document": "public.item"}' },
    ])
    expect((await pool.query('select * from outboxd_capture.captured')).rows).toMatchObject([
      {
        document: 'public.item',
        key_column: 'id',
        type: 'order',
        children: [],
        condition: 'n.amount > 0',
        payload: ['customerId', 'customer_no', 'amount', 'amount'],
        outbox: 'public.outbox',
      },
    ])
  })

  test('install.sql prints nothing, the first time and again', async () => {
    const { pool } = await setupSale()
    await asInstaller(pool, captureFile('remove'))
    await pool.query('create schema outboxd_capture authorization outboxd_capture')
    const client = await pool.connect()
    onTestFinished(() => client.release(true))
    const notices: unknown[] = []
    client.on('notice', ({ message }) => notices.push(message))
    await client.query('set client_min_messages = notice; set role outboxd_capture')
    await client.query(captureFile('install'))
    await client.query(captureFile('install'))
    expect(notices).toEqual([])
  })

  test('replaces earlier settings; `remove` stops capture, and nothing is left behind', async () => {
    const { pool, captured } = await setupSale()
    await asInstaller(pool, `select outboxd_capture.install('sale', 'order')`)
    await pool.query('insert into sale values (1); insert into line values (1, 8)')
    expect(await captured()).toMatchObject([{ type: 'order', key: '1' }])
    await asInstaller(pool, `select outboxd_capture.remove('sale')`)
    await pool.query('insert into sale values (2)')
    expect(await captured()).toHaveLength(1)
    const left = `select tgname::text from pg_trigger where tgname like 'outboxd_capture%'
      union all select proname from pg_proc where pronamespace = 'outboxd_capture'::regnamespace and prorettype = 'trigger'::regtype`
    expect((await pool.query(left)).rows).toEqual([])
    await asInstaller(pool, captureFile('remove'))
    expect((await pool.query(`select from pg_namespace where nspname = 'outboxd_capture'`)).rows).toEqual([])
  })

  test('a document with two types gets a row for each, and one type can be removed', async () => {
    const { pool, captured } = await setupSale()
    await asInstaller(pool, `select outboxd_capture.install('sale', 'total')`)
    await pool.query(
      `begin; insert into sale values (1); insert into line values (1, 1); update sale set state = 'a'; commit`,
    )
    expect((await captured()).map(({ type, key }) => `${type} ${key}`).sort()).toEqual([
      'order 1',
      'order 9',
      'total 1',
      'total 9',
    ])
    await pool.query(`update outbox set status = 'completed' where type = 'total'`)
    const { rows } = await pool.query(`select type, state from outboxd_capture.document where id = '1' order by type`)
    expect(rows).toEqual([
      { type: 'order', state: 'new' },
      { type: 'total', state: 'completed' },
    ])
    await asInstaller(pool, `select outboxd_capture.remove('sale', 'order')`)
    await pool.query(`truncate outbox; update sale set state = 'b' where id = 1; insert into line values (2, 1)`)
    expect(await captured()).toMatchObject([{ type: 'total', key: '1' }])
    expect(await trouble(pool)).toEqual([])
  })

  test('a document may be its own child, have a child by two columns, or share a child table with another', async () => {
    const { pool, captured } = await setup({
      tables: `create table sale (id int primary key, parent int); create table invoice (id int primary key);
        create table line (id int primary key, sale int, return_of int, invoice int)`,
      options: `children => '{sale.parent, line.sale, public.line.return_of}'`,
    })
    await asInstaller(pool, `select outboxd_capture.install('invoice', 'invoice', children => '{line.invoice}')`)
    const written = async () => {
      const rows = (await captured()).map(({ type, key }) => `${type} ${key}`).sort()
      await pool.query('truncate outbox')
      return rows
    }
    await pool.query('insert into sale values (2, 1)')
    expect(await written()).toEqual(['order 1', 'order 2'])
    await pool.query('insert into line values (1, 3, 4, 5)')
    expect(await written()).toEqual(['invoice 5', 'order 3', 'order 4'])
    await pool.query('delete from sale')
    expect(await written()).toEqual(['order 1'])
  })

  test.each([
    [`install('heap', 'a')`, 'public.heap has no primary key of one column that is'],
    [`install('pair', 'a')`, 'public.pair has no primary key of one column'],
    [`install('days', 'a')`, 'public.days has no primary key of one column that is an integer'],
    [`install('shown', 'a')`, 'shown has no primary key'],
    [`install('part_1', 'a')`, 'public.part_1 is a part of public.part'],
    [`install('sale', 'a', children => '{lines.sale}')`, 'there is no table public.lines'],
    [
      `install('sale', 'a', children => '{line.sales}')`,
      'public.line has no column sales of the type of public.sale.id',
    ],
    [`install('sale', 'a', children => '{line.note}')`, 'public.line has no column note of the type of public.sale.id'],
    [
      `install('sale', 'a', children => '{line.amount}')`,
      'public.line has no column amount of the type of public.sale.id',
    ],
    [`install('sale', 'a', children => '{line.twice}')`, 'public.line has no column twice'],
    [`install('sale', 'a', children => '{part_1.id}')`, 'public.part_1 is a part of public.part'],
    [`install('sale', 'a', children => '{line.sale}', key => 'state')`, 'leave key out'],
    [`install('sale', 'a', key => 'stat')`, 'public.sale has no column stat'],
    [`install('sale', 'a', payload => '{a}')`, 'payload must be pairs'],
    [`install('sale', 'a', payload => '{a, b}')`, 'payload or condition: column n.b does not exist'],
    [`install('sale', 'a', condition => $$n.stauts = 'x'$$)`, 'payload or condition: column n.stauts does not exist'],
    [`install('sale', 'a', condition => 'state')`, 'payload or condition: argument of WHERE must be type boolean'],
    [`install('sale', 'a', condition => 'state = ours()')`, 'payload or condition: function ours() does not exist'],
    [`install('sale', 'a', condition => 'state >')`, 'payload or condition: syntax error'],
    [`install('named', 'a')`, 'public.named.id has a collation by which different texts are equal'],
    [`install('plain', 'a', children => '{named_line.plain}')`, 'public.named_line.plain has a collation by which'],
    [`install('line', 'order')`, 'the type order is that of public.sale already'],
    [`install('sale', 'a', outbox => 'line')`, 'public.line does not take rows'],
  ])('install refuses a mistake in condition, key or lines with the reason (%s)', async (call, message) => {
    const { pool, captured } = await setup({
      tables: `create table sale (id int primary key, state text);
        create table line (id int primary key, sale int, note text, amount numeric(6, 2), twice int generated always as (id * 2) virtual);
        create table heap (a int); create table pair (a int, b int, primary key (a, b)); create table days (id date primary key);
        create view shown as table sale; create table part (id int primary key) partition by range (id);
        create table part_1 partition of part for values from (0) to (10);
        ${anyCase};
        create table named (id text collate any_case primary key); create table plain (id text primary key);
        create table named_line (id int primary key, plain text collate any_case)`,
    })
    await expect(asInstaller(pool, `select outboxd_capture.${call}`)).rejects.toThrow(message)
    await pool.query('insert into sale values (1)') // what was installed before goes on
    expect(await captured()).toHaveLength(1)
  })

  test.each([
    ['int', 'bigint', `'1'`, `'1'`],
    ['bigint', 'smallint', `'1'`, `'1'`],
    ['varchar(9)', 'text', `'R 1'`, `'R 1'`],
    ['text', 'code', `'R 1'`, `'R 1'`],
    ['char(9)', 'char(12)', `'R 1'`, `'R 1  '`],
    ['char(9)', 'bpchar', `'R 1'`, `'R 1  '`],
    ['numeric', 'numeric', '1.50', '1.5'],
    ['numeric(9, 2)', 'price', '1.5', '1.50'],
    ['uuid', 'uuid', `'1C51F8F2-7A5B-4D61-9A9B-6B1D9B1D0000'`, `'1c51f8f27a5b4d619a9b6b1d9b1d0000'`],
  ])('a key of type %s and a reference of type %s that equals it: one document', async (key, reference, id, equal) => {
    const { pool, ids } = await setup({
      tables: `create domain code as varchar(9); create domain price as numeric(9, 2); create table sale (id ${key} primary key);
        create table line (id int, sale ${reference} references sale)`,
      options: `children => '{line.sale}'`,
    })
    await pool.query(`insert into sale values (${id})`)
    await pool.query(`insert into line values (1, ${equal})`)
    expect(new Set(await ids()).size).toBe(1)
    expect(await ids()).toHaveLength(2)
    expect(await trouble(pool)).toEqual([])
  })

  test.each([
    ['char(9)', 'varchar(9)', 'character(9)'],
    ['char(9)', 'text', 'character(9)'],
    ['varchar(9)', 'char(9)', 'character varying(9)'],
    ['code', 'text', 'public.code'],
    ['text', 'name', 'text'],
    ['text', 'uuid', 'text'],
    ['int', 'numeric', 'integer'],
    ['int', 'float8', 'integer'],
    ['numeric', 'numeric(9, 2)', 'numeric'],
    ['numeric(9, 2)', 'numeric(9, 4)', 'numeric(9,2)'],
    ['uuid', 'char(36)', 'uuid'],
  ])('a key of type %s and a reference of type %s, whose texts may differ if they are equal: refused', async (key, reference, type) => {
    const { pool } = await setup({
      tables: `create domain code as char(9); create table sale (id ${key} primary key); create table line (id int, sale ${reference})`,
    })
    await expect(
      asInstaller(pool, `select outboxd_capture.install('sale', 'order', children => '{line.sale}')`),
    ).rejects.toMatchObject({
      message: 'children: public.line has no column sale of the type of public.sale.id',
      hint: `If the column is there, give it that type: alter table public.line alter sale type ${type};`,
    })
  })

  test('a table with two types whose key gets another type is installed again, one type after the other', async () => {
    const { pool } = await setup({
      tables: 'create table sale (id varchar(9) primary key)',
      options: `condition => null`,
    })
    const install = (type: string) => asInstaller(pool, `select outboxd_capture.install('sale', '${type}')`)
    await install('notice')
    await pool.query('alter table sale alter id type char(6)')
    expect(await trouble(pool)).toMatchObject([{ reason: expect.stringContaining('install it again') }])
    await install('order')
    await install('notice')
    expect(await trouble(pool)).toEqual([])
  })

  test('a reference or a key that gets another type after the installation: reported until both have one and it is installed again', async () => {
    const { pool, ids } = await setup({
      tables: 'create table sale (id varchar(9) primary key); create table line (id int, sale varchar(9))',
      options: `children => '{line.sale}'`,
    })
    const install = () =>
      asInstaller(pool, `select outboxd_capture.install('sale', 'order', children => '{line.sale}')`)
    await pool.query('alter table line alter sale type char(12)')
    const reasons = async () => (await trouble(pool)).map(({ reason }) => reason)
    expect(await reasons()).toEqual([
      'public.line.sale has another type than public.sale.id, so one document counts as several: give it that type',
    ])
    await pool.query('alter table sale alter id type char(9)')
    expect(await reasons()).toEqual([expect.stringContaining('public.sale.id had another type when it was installed')])
    await install()
    expect(await trouble(pool)).toEqual([])
    await pool.query(`begin; insert into sale values ('R 1'); insert into line values (1, 'R 1'); commit`)
    expect(await ids()).toEqual(['R 1'])
  })

  test('install reads the names in the condition by the caller’s search path, and does not run it', async () => {
    const { pool } = await setupSale()
    await pool.query(
      `create function loud(x text) returns boolean language plpgsql immutable as $$begin raise 'ran'; end$$`,
    )
    await asInstaller(
      pool,
      `select outboxd_capture.install('sale', 'order', children => '{line.sale}',
        condition => $$loud('x') and exists (select from line l where l.sale = n.id) -- %s$$)`,
    )
    await pool.query('insert into sale values (1)')
    expect(await noted(pool)).toEqual([])
  })

  test('names with capitals, quotes, dots or a long common start work', async () => {
    const { pool, captured } = await setup({ tables: 'create table sale (id int primary key)' })
    const long = 'é'.repeat(30)
    await pool.query('create schema "Ein Mandant"')
    for (const end of ['a', 'b']) {
      const names = [
        `"Ein Mandant"."AUFTRÄGE'\\ .${long.slice(8)}${end}"`,
        `"Ein Mandant"."Position ""${long.slice(8)}${end}"`,
      ] as const
      await pool.query(
        `create table ${names[0]} ("BELEG-NR" varchar(9) primary key); create table ${names[1]} (id int primary key, "Beleg" varchar(9))`,
      )
      await asInstaller(
        pool,
        `set standard_conforming_strings = off; set quote_all_identifiers = on; select outboxd_capture.install($d$${names[0].replaceAll('\\', '\\')}$d$, '${end}', children => array[$d$${names[1].slice('"Ein Mandant".'.length)}."Beleg"$d$])`,
      )
      await pool.query(`insert into ${names[0]} values ('N1'); insert into ${names[1]} values (1, 'N2')`)
      const { rows } =
        await pool.query(`select count(*)::int as n from outbox o where exists (select from ${names[0]} d, outboxd_capture.captured c
        where to_regclass(o.payload ->> 'document') = c.erp_table and c.document = o.payload ->> 'document' and d."BELEG-NR" = 'N1' and o.payload ->> 'id' = 'N1'
        and c.type = '${end}')`)
      expect(rows).toEqual([{ n: 1 }])
    }
    expect((await captured()).map(({ type, key }) => type + key)).toEqual(['aN1', 'aN2', 'bN1', 'bN2'])
    expect(await noted(pool)).toEqual([])
    expect(await trouble(pool)).toEqual([])
  })
})

describe('the ERP is never harmed', () => {
  test('a writer of the ERP table needs no rights on the outbox, and row security does not hide a change', async () => {
    const { pool, ids } = await setupSale()
    await pool.query(`grant insert, select, update on sale to pg_monitor; alter table sale enable row level security;
      create policy own on sale using (id < 50) with check (true);
      begin; set local role pg_monitor; insert into sale values (60); update sale set state = 'z' where id = 9; commit`)
    expect((await ids()).sort()).toEqual(['60', '9'])
    await pool.query(`begin; set local session_replication_role = replica; insert into sale values (61); commit`)
    expect(await ids()).toHaveLength(2)
  })

  test('dropping, renaming or retyping captured columns does not stop the ERP', async () => {
    const { pool, ids } = await setup({ tables: 'create table sale (id int primary key, state text, doc json)' })
    const session = await pool.connect()
    onTestFinished(() => session.release(true))
    await session.query(`insert into sale values (1, 'a', '{}')`)
    await pool.query('alter table sale drop column state')
    await session.query('insert into sale values (2)')
    await pool.query('alter table sale alter doc type text; alter table sale rename doc to text')
    await session.query('insert into sale values (3)')
    expect(await ids()).toEqual(['1', '2', '3'])
    expect(await noted(pool)).toEqual([])
  })

  test.each([
    ['gets another type', 'alter table sale alter id type text', '1,2,1'],
    [
      'gets a type that the trigger does not read',
      `create type letter as enum ('1', '2', '3'); alter table sale alter id type letter using id::text::letter`,
      '1,2,1',
    ],
    ['is renamed', 'alter table sale rename id to number', '1'],
  ])('a key column that %s does not stop the ERP', async (_, change, sent) => {
    const { pool, ids } = await setup({ tables: 'create table sale (id int primary key, state text)' })
    const session = await pool.connect()
    onTestFinished(() => session.release(true))
    await session.query(`insert into sale values (1)`)
    await pool.query(change)
    await session.query(`insert into sale values ('2'); update sale set state = 'a'`)
    const told = await trouble(pool)
    if (told.length > 0) expect(told).toMatchObject([{ table_name: 'public.sale', has_unknown: true }])
    else expect((await ids()).join()).toBe('1,2,1')
    expect((await ids()).length).toBeGreaterThanOrEqual(sent === '1' ? 1 : 1)
    expect((await pool.query('select from sale')).rowCount).toBe(2)
    await asInstaller(pool, `select outboxd_capture.install('sale', 'order')`).catch(() => undefined)
  })

  test('the outbox is gone, locked or refuses the row: the ERP goes on, and its changes are noted', async () => {
    const { pool, ids } = await setupSale()
    await pool.query(
      `alter table outbox rename to away; insert into line values (1, 1); alter table away rename to outbox`,
    )
    const locker = await pool.connect()
    await locker.query('begin; lock outbox in access exclusive mode')
    await pool.query(`insert into sale values (2)`)
    await locker.query('rollback')
    locker.release()
    await pool.query(
      `alter table outbox add constraint no check (payload ->> 'id' <> '3') not valid; insert into sale values (3), (4)`,
    )
    expect(await noted(pool)).toEqual([
      { table: 'public.sale', operation: 'INSERT', key: '1', sqlstate: '42P01' },
      { table: 'public.sale', operation: 'INSERT', key: '2', sqlstate: '55P03' },
      { table: 'public.sale', operation: 'INSERT', key: '3', sqlstate: '23514' },
      { table: 'public.sale', operation: 'INSERT', key: '4', sqlstate: '23514' },
    ])
    expect(await trouble(pool)).toMatchObject([{ table_name: 'public.sale', notes: '4', has_unknown: false }])
    expect(await retry(pool)).toEqual([
      {
        erp_table: 'public.sale',
        captured: 0,
        failed: 4,
        reason: expect.stringContaining('violates check constraint'),
      },
    ])
    await pool.query('alter table outbox drop constraint no')
    expect(await retry(pool)).toEqual([{ erp_table: 'public.sale', captured: 4, failed: 0, reason: null }])
    expect(await ids()).toEqual(['1', '2', '3', '4'])
    expect(await trouble(pool)).toEqual([])
  })

  test('a noted change is captured with the key of its last note, and without a key with its id', async () => {
    const { pool, captured } = await setup({
      tables: 'create table sale (id int primary key, customer text, amount int)',
      options: `key => 'customer'`,
    })
    await pool.query(`alter table outbox rename to away; insert into sale values (1, 'a'), (2, 'b'), (3, ''), (4, null);
      update sale set customer = 'c' where id = 1; alter table away rename to outbox`)
    expect(await retry(pool)).toMatchObject([{ captured: 4, failed: 0 }])
    expect((await captured()).map(({ key, payload }) => [key, JSON.parse(payload).id])).toEqual([
      ['b', 2],
      ['3', 3],
      ['4', 4],
      ['c', 1],
    ])
  })

  test('a numeric key without a scale: 1 and 1.00 are one document with one key', async () => {
    const { pool, captured } = await setup({
      tables: `create domain code as numeric; create table sale (id code primary key, state text);
        create table line (id int primary key, sale numeric references sale, amount int)`,
      options: `children => '{line.sale}'`,
    })
    await pool.query(`insert into sale values (1, 'a'), (2.00, 'b'), (2.50, 'c'), (1000, 'd')`)
    await pool.query(`insert into line values (1, 1.00, 90), (2, 2, 91), (3, 2.500, 92), (4, 1000.0, 93)`)
    expect((await captured()).map(({ key, payload }) => [key, payload])).toEqual(
      ['1', '2', '2.5', '1000', '1', '2', '2.5', '1000'].map((id) => [id, `{"id": ${id}, "document": "public.sale"}`]),
    )
    // Rows that a program wrote.
    await pool.query(`truncate outbox; insert into outbox (type, key, payload)
      select 'order', id, jsonb_build_object('document', 'public.sale', 'id', id::jsonb) from unnest('{1.00,2.00,2,2.5,1000.00}'::text[]) id`)
    const read = await readContents(pool)
    expect(read.map(({ payload }) => JSON.parse(payload ?? '{}').state)).toEqual(['a', 'b', 'b', 'c', 'd'])
    const source = { file: 'order.yaml', sql: 'select id::text, state from sale where id = any($1)' }
    const queried = await readContents(pool, source)
    expect(queried.map(({ payload }) => JSON.parse(payload ?? '{}').state)).toEqual(['a', 'b', 'b', 'c', 'd'])
  })

  test('a text key: 1 and 1.00 are two documents', async () => {
    const { pool } = await setup({ tables: 'create table sale (id text primary key, state text)' })
    await pool.query(`insert into sale values ('1', 'a'), ('1.00', 'b')`)
    const read = await readContents(pool)
    expect(read.map(({ payload }) => JSON.parse(payload ?? '{}').state)).toEqual(['a', 'b'])
  })

  test.each([
    [
      'rows of partitions',
      'insert into item_1 values (1); insert into item_2 values (11); insert into item values (2)',
      false,
    ],
    [
      'statements of one transaction',
      'insert into item values (1); insert into item values (2); update item set amount = 3',
      false,
    ],
    [
      'documents whose notes are locked, too',
      'insert into item values (1); insert into item values (2); insert into item values (3)',
      true,
    ],
  ])('a transaction waits only once for a locked outbox: %s', async (_, statements, notesToo) => {
    const { pool } = await setupItem()
    const locker = await pool.connect()
    onTestFinished(() => locker.release(true))
    await locker.query(`begin; lock outbox in access exclusive mode`)
    if (notesToo) await locker.query('lock outboxd_capture.error in access exclusive mode')
    const began = performance.now()
    await pool.query(`begin; ${statements}; commit`)
    expect(performance.now() - began).toBeLessThan(notesToo ? 4_000 : 2_500)
    await locker.query('rollback')
    if (notesToo) return
    expect(new Set((await noted(pool)).map(({ sqlstate }) => sqlstate))).toEqual(new Set(['55P03']))
    await retry(pool)
    expect(await noted(pool)).toEqual([])
    await pool.query(`insert into item values (15, 50)`)
    expect(await noted(pool)).toEqual([])
  })

  test('an ASSERT that fails in a trigger of the outbox or of the notes does not stop the ERP', async () => {
    const { pool } = await setupSale()
    await pool.query(`create function no() returns trigger language plpgsql as $$begin assert false, 'no'; return new; end$$;
      create trigger no before insert on outbox for each row execute function no()`)
    await pool.query('insert into sale values (1)')
    expect(await noted(pool)).toMatchObject([{ key: '1', sqlstate: 'P0004' }])
    expect(await retry(pool)).toMatchObject([{ failed: 1, reason: 'no' }])
    await pool.query('create trigger no before insert on outboxd_capture.error for each row execute function no()')
    await pool.query('insert into sale values (2)')
    expect(await noted(pool)).toHaveLength(1)
  })

  test.each([
    ['outbox', ''],
    [
      'outbox_1',
      'drop table outbox; create table outbox (id bigint generated always as identity, type text, key text, payload jsonb, created_at timestamptz default now()) partition by list (type); create table outbox_1 partition of outbox default;',
    ],
  ])('a deferrable constraint of %s is refused, and reported if it is added later, because our guard cannot catch it', async (table, first) => {
    const { pool } = await setupSale(first)
    expect(await trouble(pool)).toEqual([])
    await pool.query(`alter table ${table} add constraint once unique (key, created_at) deferrable`)
    const reason = 'a constraint of public.outbox is deferrable'
    await expect(asInstaller(pool, `select outboxd_capture.install('sale', 'order')`)).rejects.toThrow(reason)
    expect(await trouble(pool)).toMatchObject([{ table_name: 'public.sale', reason: expect.stringContaining(reason) }])
  })

  test.each([
    [
      'a trigger',
      `create function swallow() returns trigger language plpgsql as $$begin return null; end$$;
      create trigger swallow before insert on outbox for each row execute function swallow()`,
      'drop trigger swallow on outbox',
    ],
    ['a rule', 'create rule swallow as on insert to outbox do instead nothing', 'drop rule swallow on outbox'],
  ])('install refuses %s that keeps rows out of the outbox, and such rows are noted', async (what, swallow, mend) => {
    const { pool, ids } = await setupSale()
    await pool.query(swallow)
    await expect(asInstaller(pool, `select outboxd_capture.install('sale', 'order')`)).rejects.toThrow(/public\.outbox/)
    await pool.query(`insert into sale values (2); update line set amount = 3 where id = 90`)
    expect(await noted(pool)).toMatchObject([
      { operation: 'INSERT', key: '2' },
      { operation: 'UPDATE', key: '9' },
    ])
    if (what === 'a rule') expect((await trouble(pool)).map(({ reason }) => reason).join()).toContain('has a rule')
    expect(await retry(pool)).toMatchObject([{ captured: 0, failed: 2 }])
    await pool.query(mend)
    expect(await retry(pool)).toMatchObject([{ captured: 2 }])
    expect((await ids()).sort()).toEqual(['2', '9'])
  })

  test('if a note cannot be written either, the statement succeeds, and only the server’s log says so', async () => {
    const { pool } = await setup({ tables: 'create table "sales_Ж" (id int primary key)', document: '"sales_Ж"' })
    await pool.query(`alter table outbox rename to away; alter table outboxd_capture.error rename to gone`)
    const client = await pool.connect()
    onTestFinished(() => client.release(true))
    const warnings: string[] = []
    client.on('notice', ({ message }) => warnings.push(message ?? ''))
    const { oid } = (await pool.query(`select '"sales_Ж"'::regclass::oid as oid`)).rows[0]
    await pool.query(`do $$begin execute format('create view plain as select * from %s', ${oid}::regclass); end$$`)
    await client.query('set client_encoding = latin1; set client_min_messages = log')
    await client.query('insert into plain values (1)')
    expect((await client.query('select from plain')).rowCount).toBe(1)
    expect(warnings.join()).toContain(
      `a change of the table ${oid} was not captured (42P01) and could not be noted (42P01)`,
    )
  })

  // Our settings, which any session may set; then settings of Postgres that change how SQL is read.
  test.each([
    ['outboxd_capture.written_N', 'x'],
    ['outboxd_capture.written_N', '"1"'],
    ['outboxd_capture.locked', 'x'],
    [
      'standard_conforming_strings=off backslash_quote=off quote_all_identifiers=on transform_null_equals=on array_nulls=off DateStyle=German IntervalStyle=iso_8601 bytea_output=escape xmloption=document search_path= row_security=off lock_timeout=1 plpgsql.extra_errors=all default_transaction_isolation=serializable',
      '',
    ],
  ])('a session that has set %s to %s is captured as usual', async (name, value) => {
    const { pool, captured } = await setupSale()
    const { number } = (await pool.query(`select number from outboxd_capture.installed`)).rows[0]
    const client = await pool.connect()
    onTestFinished(() => client.release(true))
    for (const setting of name.includes('=') ? name.split(' ') : [`${name.replace('_N', `_${number}`)}=${value}`])
      await client.query(`select set_config($1, $2, false)`, setting.split('='))
    await client.query(
      `insert into public.sale values (1, 'a'); insert into public.line values (1, 1); update public.sale set state = 'b' where id = 1`,
    )
    expect(await noted(pool)).toEqual([])
    expect(await captured()).toEqual([{ type: 'order', key: '1', payload: '{"id": 1, "document": "public.sale"}' }])
  })

  test('a role without rights on the tables may read which tables are not covered', async () => {
    const { pool } = await setup({
      tables: `create schema erp; create table erp.sale (id int primary key); create table erp.line (id int primary key, sale int)`,
      document: 'erp.sale',
      options: `children => '{line.sale}'`,
    })
    await pool.query('alter table erp.line disable trigger user; grant pg_monitor to current_user')
    const [, , result] = (await pool.query(
      `begin; set local role pg_monitor; select * from outboxd_capture.trouble; rollback`,
    )) as unknown as pg.QueryResult[]
    expect(result?.rows).toMatchObject([{ reason: expect.stringContaining('triggers of erp.line are gone') }])
  })

  test('any role may see that notes exist', async () => {
    const { pool } = await setupSale()
    await pool.query(`alter table outbox rename to away; insert into sale values (1)`)
    const [, , result] = (await pool.query(
      `begin; set local role pg_monitor; select * from outboxd_capture.trouble; rollback`,
    )) as unknown as pg.QueryResult[]
    expect(result?.rows).toMatchObject([
      { table_name: 'public.sale', notes: '1', reason: expect.stringContaining('42P01') },
    ])
  })
})

describe('tables of other kinds, and tables that change', () => {
  test('rows are captured through any partition, and a new partition is reported', async () => {
    const { pool, ids } = await setupItem()
    await pool.query(
      `begin; insert into item values (1), (11); insert into item_1 values (2); update item set amount = 1; commit`,
    )
    expect(await ids()).toEqual(['1', '11', '2'])
    await pool.query(`truncate outbox; update item set id = 12 where id = 2; delete from item where id = 1`)
    expect(await ids()).toEqual(['12'])
    expect(await trouble(pool)).toEqual([])
    await pool.query(`create table item_3 partition of item for values from (20) to (30); insert into item values (21)`)
    expect(await ids()).toEqual(['12', '21'])
    expect(await trouble(pool)).toMatchObject([{ reason: 'rows written to item_3: install it again' }])
    await asInstaller(pool, `select outboxd_capture.install('item', 'order')`)
    await pool.query(`insert into item_3 values (22)`)
    expect(await ids()).toEqual(['12', '21', '22'])
    expect(await trouble(pool)).toEqual([])
  })

  test('a line that moves to another partition and document of a partitioned child table is captured', async () => {
    const { pool, ids } = await setup({
      tables: `create table sale (id int primary key); create table line (id int, sale int) partition by range (id);
        create table line_1 partition of line for values from (0) to (10); create table line_2 partition of line for values from (10) to (20)`,
      options: `children => '{line.sale}'`,
    })
    await pool.query(`insert into line values (1, 1); insert into line_2 values (11, 2)`)
    await pool.query(`update line set id = 12, sale = 3 where id = 1; delete from line_2 where id = 11`)
    expect(await ids()).toEqual(['1', '2', '1', '3', '2'])
  })

  test('a table that inherits later is reported', async () => {
    const { pool, ids } = await setup({
      tables: `create table sale (id int primary key, state text); create table old_sale (reason text) inherits (sale)`,
    })
    await pool.query(`insert into sale values (1); insert into old_sale values (2)`)
    await pool.query(`update sale set state = 'a'`)
    expect(await ids()).toEqual(['1', '2', '1', '2'])
    await pool.query(`create table new_sale () inherits (sale)`)
    expect(await trouble(pool)).toMatchObject([
      { table_name: 'public.sale', reason: expect.stringContaining('new_sale') },
    ])
  })

  test.each([
    ['renamed', 'alter table sale rename to old_sale', 'it is old_sale now: install it again'],
    [
      'swapped by its name',
      'alter table sale rename to old_sale; create table sale (like old_sale including all)',
      'it is old_sale now, and nothing captures the table that bears its name now',
    ],
    [
      'swapped by its schema',
      'create schema archive; alter table sale set schema archive; create table sale (like archive.sale including all)',
      'it is archive.sale now, and nothing captures the table that bears its name now',
    ],
    [
      'replaced by a view of its name',
      'alter table sale rename to old_sale; create view sale as table old_sale',
      'it is old_sale now, and nothing captures',
    ],
    ['dropped', 'drop table sale cascade', 'it was dropped'],
    [
      'made a partition',
      `create table whole (id bigint primary key, state text) partition by range (id); alter table line drop column owner; alter table whole attach partition sale default`,
      'public.sale has become a partition',
    ],
    [
      'left with a trigger switched off',
      'alter table sale disable trigger user',
      'triggers of public.sale are gone or switched off',
    ],
    [
      'left with a child’s trigger switched off',
      'alter table line disable trigger user',
      'triggers of public.line are gone or switched off',
    ],
    ['left without its child table', 'drop table line', 'there is no table public.line any more'],
    [
      'left with another child table',
      'alter table line rename to old_line; create table line (id int, sale int)',
      'triggers of public.line are gone or',
    ],
    [
      'left with a key whose collation ignores case',
      `${anyCase}; alter table line drop column owner; alter table sale alter id type text collate any_case`,
      'public.sale.id has a collation by which different texts are equal',
    ],
    [
      'left with a child’s reference whose collation ignores case',
      `${anyCase}; alter table line alter sale type text collate any_case`,
      'public.line.sale has a collation by which different texts are equal',
    ],
    ['the target of a subscription', subscribe('sale'), 'rows that the subscription copy writes to sale'],
    [
      'left with an outbox of another owner',
      'alter table outbox owner to pg_monitor',
      'code of pg_monitor runs with the rights of outboxd_capture',
    ],
  ])('a captured table that is %s is reported', async (_, change, reason) => {
    const { pool } = await setupSale()
    onTestFinished(async () => {
      if (change.includes('subscription copy')) await pool.query('drop subscription copy')
    })
    await pool.query(change)
    expect(await trouble(pool)).toContainEqual(
      expect.objectContaining({ table_name: 'public.sale', notes: '0', reason: expect.stringContaining(reason) }),
    )
  })

  test('changes of a renamed table are noted until it is installed again', async () => {
    const { pool, ids, captured } = await setupSale()
    await pool.query(
      `alter table line rename to position; alter table sale rename to auftrag; insert into auftrag values (1); insert into position values (1, 9)`,
    )
    expect(await ids()).toEqual([])
    expect(await noted(pool)).toMatchObject([
      { table: 'public.sale', key: '1', sqlstate: '42P01' },
      { table: 'public.sale', key: '9', sqlstate: '42P01' },
    ])
    await asInstaller(pool, `select outboxd_capture.install('auftrag', 'order', children => '{position.sale}')`)
    expect(await retry(pool)).toMatchObject([{ erp_table: 'public.auftrag', captured: 2 }])
    expect((await captured())[0]?.payload).toContain('public.sale')
  })

  test('a table that is renamed and installed again keeps its name in the outbox, so its rows of before and after are read as one document', async () => {
    const { pool } = await setupSale()
    await pool.query(`alter table sale rename to auftrag; update line set amount = 5`)
    const install = () =>
      asInstaller(pool, `select outboxd_capture.install('auftrag', 'order', children => '{line.sale}')`)
    await install()
    await pool.query(`update auftrag set state = 'a'`)
    await install()
    await pool.query(`update auftrag set state = 'b'`)
    // As docs/start/change-capture.md writes rows of documents that existed before.
    await pool.query(`insert into outbox (type, key, payload)
      select 'order', id::text, jsonb_build_object('document', 'public.auftrag', 'id', id) from auftrag`)
    const read = { document: 'public.sale 9', payload: '{"id":9,"state":"b"}' }
    expect(await readContents(pool)).toMatchObject([read, read, read, read])
    expect(await trouble(pool)).toEqual([])
  })

  test('a table that was dropped and created again is captured after it is installed again, without old functions', async () => {
    const { pool, ids } = await setup({ tables: 'create table sale (id int primary key)' })
    await pool.query(`drop table sale; create table sale (id int primary key)`)
    await asInstaller(pool, `select outboxd_capture.install('sale', 'order')`)
    await pool.query(`insert into sale values (1)`)
    expect(await ids()).toEqual(['1'])
    expect(await trouble(pool)).toEqual([])
    const functions = `select from pg_proc where pronamespace = 'outboxd_capture'::regnamespace and prorettype = 'trigger'::regtype`
    expect((await pool.query(functions)).rowCount).toBe(2)
  })

  test('a table that took the name of a captured one takes its place once it is installed', async () => {
    const { pool, ids } = await setupSale()
    await pool.query(`alter table sale rename to old_sale; create table sale (id bigint primary key)`)
    await asInstaller(pool, `select outboxd_capture.install('sale', 'order', children => '{line.sale}')`)
    await pool.query(`insert into sale values (1); update old_sale set state = 'a'; insert into line values (100, 2)`)
    expect(await ids()).toEqual(['1', '2'])
    expect(await trouble(pool)).toEqual([])
  })

  test('the hint about a type that a renamed table has removes that table; removing nothing gives a warning', async () => {
    const { pool } = await setup({
      tables: 'create table sale (id int primary key); create table other (id int primary key)',
    })
    await pool.query('alter table sale rename to old_sale')
    const call = `select outboxd_capture.install('other', 'order')`
    const hint: string = await asInstaller(pool, call).then(
      () => '',
      (error) => error.hint,
    )
    await asInstaller(pool, hint.slice(hint.indexOf('select')))
    await asInstaller(pool, call)
    const warnings: (string | undefined)[] = []
    const client = await pool.connect()
    onTestFinished(() => client.release(true))
    client.on('notice', ({ message }) => warnings.push(message))
    await client.query(
      `set role outboxd_capture; select outboxd_capture.remove('other'); select outboxd_capture.remove('other')`,
    )
    expect(warnings).toEqual(['public.other is not captured: nothing was removed'])
  })

  test('documents of a swapped table are held until it is installed again, and not discarded as deleted', async () => {
    const { pool, ids } = await setupSale()
    const call = `select outboxd_capture.install('sale', 'order', children => '{line.sale}', condition => $$n.state = 'a'$$)`
    await asInstaller(pool, call)
    await pool.query(`alter table sale rename to old_sale; create table sale (id bigint primary key, state text);
      insert into sale values (1, 'a'); insert into line values (100, 1)`)
    expect(await ids()).toEqual(['1'])
    await expect(readContents(pool)).rejects.toMatchObject({
      name: 'SourceFailed',
      blame: 'type',
      detail: expect.stringContaining('see outboxd_capture.trouble'),
    })
    await asInstaller(pool, call)
    expect(await readContents(pool)).toMatchObject([{ payload: '{"id":1,"state":"a"}' }])
  })

  test('retry says of a table with unknown ids what helps, and it helps', async () => {
    const { pool, ids } = await setupSale()
    await pool.query(`alter table line rename sale to document; update line set amount = 2`)
    const call = `select outboxd_capture.install('sale', 'order', children => '{line.document}')`
    await asInstaller(pool, call)
    const [told, ...others] = await retry(pool)
    expect([told, others]).toMatchObject([
      { erp_table: 'public.sale', captured: 0, reason: expect.stringContaining('update these documents') },
      [],
    ])
    await pool.query('update sale set id = id where id = 9')
    await asInstaller(pool, told.reason.slice(told.reason.indexOf('select ')))
    expect(await ids()).toEqual(['9'])
    expect(await retry(pool)).toEqual([])
    expect(await trouble(pool)).toEqual([])
  })

  test('a change that cannot be noted by its id is noted even if `dismiss` deletes such a note at the same time', async () => {
    const { pool } = await setupSale()
    await pool.query(`alter table outbox rename to away; insert into sale select n from generate_series(10, 100010) n`)
    expect(await trouble(pool)).toMatchObject([{ notes: '1', has_unknown: true }])
    const person = await pool.connect()
    onTestFinished(() => person.release(true))
    await person.query(`begin; select outboxd_capture.dismiss('sale')`)
    await pool.query(`update sale set state = 'a'`)
    await person.query('commit')
    expect(await trouble(pool)).toMatchObject([{ notes: '1', has_unknown: true }])
  })

  test('after a restore that changed the tables’ oids, changes are captured as before', async () => {
    const { pool, ids } = await setup({ tables: 'create table sale (id int primary key)' })
    // As after pg_restore: regclass columns follow the names, the function's text does not.
    const { name } = (
      await pool.query(`select tgfoid::regproc::text as name from pg_trigger where tgrelid = 'sale'::regclass`)
    ).rows[0]
    await pool.query(`drop table sale; create table sale (id int primary key);
      create table restored (like outbox including all); alter table outbox rename to former; alter table restored rename to outbox;
      grant insert on outbox to outboxd_capture;
      update outboxd_capture.installed set erp_table = 'sale'::regclass, outbox = 'outbox'::regclass;
      create trigger outboxd_capture_insert after insert on sale referencing new table as new_rows for each statement execute function ${name}()`)
    await pool.query('insert into sale values (1)')
    expect(await noted(pool)).toEqual([])
    expect(await ids()).toEqual(['1'])
  })
})

describe('row-level security that hides rows from the daemon', () => {
  test.each(['sale', 'line'])('of %s: documents are held, and not discarded as deleted', async (table) => {
    const { pool, asReader } = await setupReader()
    await pool.query(`insert into sale values (1, 'a'); alter table ${table} enable row level security`)
    await expect(readContents(asReader)).rejects.toMatchObject({
      name: 'SourceFailed',
      blame: 'type',
      detail: expect.stringContaining('row-level security'),
    })
    // A policy of another role, or for another command, does not help.
    await pool.query(
      `create policy a on ${table} to pg_checkpoint using (true); create policy b on ${table} for insert with check (true)`,
    )
    await expect(readContents(asReader)).rejects.toThrow('row-level security')
    await pool.query(`create policy reader on ${table} for select to pg_monitor using (true)`)
    expect(await readContents(asReader)).toMatchObject([{ payload: '{"id":1,"state":"a"}' }])
  })

  test('does not hold documents if the daemon’s role is exempt, or a policy shows rows to every role', async () => {
    const { pool, asReader } = await setupReader()
    await pool.query(`insert into sale values (1, 'a'); alter table sale enable row level security`)
    expect(await readContents(pool)).toHaveLength(1)
    await pool.query(`create policy a on sale using (id < 50)`)
    expect(await readContents(asReader)).toMatchObject([{ payload: '{"id":1,"state":"a"}' }])
  })
})

describe('outboxd_capture.document', () => {
  test('has the state of the last change of each document, and passes over rows discarded as unchanged', async () => {
    const { pool } = await setupSale()
    await pool.query(`insert into sale values (1), (2), (3)`)
    await pool.query(`update sale set state = 'a'`)
    await pool.query(`insert into outbox (type, payload) values ('order', '{"a": 1}')`)
    const end = (id: number, nth: number, values: string) =>
      pool.query(`update outbox set (status, transaction_id, error, updated_at) = row(${values}) where id =
        (select id from outbox where payload ->> 'id' = '${id}' order by id offset ${nth} limit 1)`)
    await end(1, 0, `'completed', 'T-1', null, '2026-11-23 10:00+00'`)
    await end(1, 1, `'discarded', null, 'unchanged since outbox:1', now()`)
    await end(2, 0, `'completed', 'T-2', null, now()`)
    await end(2, 1, `'rejected', null, 'items: is empty', now()`)
    await end(3, 0, `'completed', 'T-3', null, now()`)
    await end(3, 1, `'discarded', null, 'sale 3 does not meet the condition', now()`)
    const { rows } = await pool.query(`select s.id::int, d.state, d.transaction_id, d.error from sale s
      left join outboxd_capture.document d on d.table_name = 'public.sale' and d.id = s.id::text order by 1`)
    expect(rows).toEqual([
      { id: 1, state: 'completed', transaction_id: 'T-1', error: null },
      { id: 2, state: 'rejected', transaction_id: null, error: 'items: is empty' },
      { id: 3, state: 'discarded', transaction_id: null, error: 'sale 3 does not meet the condition' },
      { id: 9, state: 'new', transaction_id: null, error: null },
    ])
  })

  test('with its index, a join reads only the rows of its documents', async () => {
    const { pool } = await setupSale()
    await pool.query(`insert into sale select n from generate_series(100, 5000) n;
      create index on public.outbox ((payload ->> 'document'), (payload ->> 'id'), id) where payload ? 'document'; analyze outbox; analyze sale`)
    const { rows } = await pool.query(`explain (format json) select * from sale s join outboxd_capture.document d
      on d.table_name = 'public.sale' and d.id = s.id::text where s.id between 200 and 210`)
    const plan = JSON.stringify(rows)
    expect(plan).toContain('outbox_expr_expr1_id_idx')
    expect(plan).not.toMatch(/Seq Scan","[^}]*"Relation Name":"outbox"/)
  })

  test('the statements of docs/start/change-capture.md work, and copy_state.sql copies the state', async () => {
    const page = readFileSync('docs/start/change-capture.md', 'utf8')
    const blocks = [...page.matchAll(/```sql\n([\s\S]*?)```/g)]
    const [grants, install, existing, twice, , join, index] = blocks.map(([, sql]) => sql as string)
    await using database = await createDatabase()
    const { pool } = database
    await pool.query(`create table sales_order (id int primary key, number text, status text);
      create table sales_line (id int primary key, order_id int)`)
    await installCapture(pool)
    const roles = grants
      ?.replace(/create role.*|create schema.*|.* to erp;.*/g, '')
      .replace('to outboxd_run;', 'to pg_monitor;')
    await pool.query(roles as string)
    await asInstaller(pool, install as string)
    await pool.query(index as string)
    await pool.query(captureFile('copy_state'))
    await pool.query(`insert into sales_order values (1, 'S-1', 'released'); insert into sales_line values (1, 1)`)
    await pool.query(existing as string)
    const written = 'select type, key, payload from outbox order by id'
    const [byTrigger, byHand] = (await pool.query(written)).rows
    expect(byHand).toEqual(byTrigger)
    // The document becomes two records; one of them is removed again.
    await asInstaller(pool, `begin; ${twice}; select outboxd_capture.remove('public.sales_order', 'total'); rollback`)
    await pool.query('delete from outbox where id = (select max(id) from outbox)')
    await pool.query(
      `update outbox set status = 'completed', transaction_id = 'T-1', updated_at = now() where status = 'new'`,
    )
    expect((await pool.query('select id, state, transaction_id from sales_order_result')).rows).toEqual([
      { id: '1', state: 'completed', transaction_id: 'T-1' },
    ])
    expect((await pool.query('select status from outbox')).rows).toEqual([{ status: 'completed' }])
    expect((await pool.query(join as string)).rows).toMatchObject([
      { number: 'S-1', state: 'completed', transaction_id: 'T-1' },
    ])
  })

  test.each([
    'failed',
    'rejected',
  ])('copy_state.sql causes no row, so that a %s record is not sent again', async (status) => {
    await using database = await createDatabase()
    const { pool } = database
    await pool.query(`create table sales_order (id bigint primary key, sent_state text, sent_id text)`)
    await installCapture(pool)
    await asInstaller(pool, `select outboxd_capture.install('sales_order', 'order')`)
    await pool.query(captureFile('copy_state'))
    await pool.query(`insert into sales_order values (9007199254740993)`)
    for (const transaction of ['T-1', 'T-2'])
      await pool.query(`update outbox set status = $1, transaction_id = $2 where status = 'new'`, [status, transaction])
    const { rows } = await pool.query('select status, transaction_id from outbox')
    expect(rows).toEqual([{ status, transaction_id: 'T-1' }])
  })

  test('needs the right to read the outbox', async () => {
    const { pool } = await setupSale()
    await expect(pool.query(`begin; set local role pg_monitor; select from outboxd_capture.document`)).rejects.toThrow(
      'permission denied for table outbox',
    )
    await pool.query('rollback')
  })
})

/** Makes a table the target of a subscription named `copy`, as CREATE SUBSCRIPTION would if there were a publisher. */
function subscribe(table: string): string {
  return `create subscription copy connection 'dbname=none' publication none with (connect = false, slot_name = none);
    set allow_system_table_mods = on;
    insert into pg_subscription_rel (srsubid, srrelid, srsubstate) select oid, '${table}'::regclass, 'r' from pg_subscription;
    reset allow_system_table_mods`
}

const anyCase = `create collation any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`

async function retry(pool: pg.Pool) {
  return (await asInstaller(pool, 'select * from outboxd_capture.retry()')).rows
}

/** Reads the contents of all rows as the daemon does. */
async function readContents(pool: pg.Pool, source: SourceQuery | null = null) {
  const { rows } = await pool.query(
    `select id::text as "outboxId", type, key, payload::text from outbox order by outbox.id`,
  )
  const outbox = new Outbox(pool, 'outbox', 1_000_000, pool)
  return readRecordContentsThatFit(outbox, new Map([['order', { source }]]), rows)
}

/** `setupSale` with a pool whose sessions have the rights of a daemon, as the role pg_monitor. */
async function setupReader() {
  const { pool } = await setupSale()
  await pool.query(`grant select on outbox, sale, line to pg_monitor`)
  const asReader = openPool(pool.options.connectionString ?? '', { options: '-c role=pg_monitor' })
  onTestFinished(() => asReader.end())
  return { pool, asReader }
}

/** A document `item` with two partitions. */
function setupItem() {
  return setup({
    tables: `create table item (id int primary key, amount int) partition by range (id); create table item_1 partition of item for values from (0) to (10);
      create table item_2 partition of item for values from (10) to (20)`,
    document: 'item',
  })
}
