import type pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { captureDocuments, createRole } from '../support/changeCapture.ts'
import { createDatabase } from '../support/database.ts'

/** A database with an ERP's tables, and the trigger on them. */
async function setup(ddl: string, document: string, children: readonly string[] = []) {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await pool.query(ddl)
  const sql = await captureDocuments(pool, document, { type: 'order', children })
  const ids = async () => (await readRows(pool)).map(({ payload }) => payload.id)
  return { pool, sql, ids }
}

async function readRows(pool: pg.Pool) {
  const { rows } = await pool.query<{ type: string; key: string; payload: { id: unknown; captured_in: string } }>(
    'select type, key, payload from outbox order by id',
  )
  return rows
}

const sale = `create table sale (id bigint primary key, state text); insert into sale values (9);
  create table line (id int primary key, sale bigint references sale on delete cascade on update cascade, amount int);
  create table allowance (line int references line on delete cascade, pct int); insert into line values (90, 9, 1);
  insert into allowance values (90, 5)`
const children = ['line(sale)', 'allowance(line)']
const setupSale = () => setup(sale, 'sale', children)

test('a header with two children takes at most 60 lines, without dynamic SQL, an exception handler or the rights of others', async () => {
  const { sql } = await setupSale()
  expect(sql.split('\n').length).toBeLessThan(45)
  expect(sql).not.toMatch(/\bexecute\s+(?!function)|format\(|exception|security definer/i)
  expect(sql).toContain('set search_path = pg_catalog, pg_temp')
})

test('a row has the type, the document’s id as key, and the transaction', async () => {
  const { pool } = await setupSale()
  await pool.query(`insert into sale values (5, 'x')`)
  expect(await readRows(pool)).toEqual([
    { type: 'order', key: '5', payload: { id: 5, captured_in: expect.stringMatching(/^\d+$/) } },
  ])
})

describe('one transaction is one row for each document', () => {
  test.each([
    ['a header and its lines', 'insert into sale values (1); insert into line values (10, 1, 1), (11, 1, 2)', [1]],
    ['row by row', 'update sale set state = $$a$$; update line set amount = 2; update line set amount = 3', [9]],
    ['a line that moves', 'insert into sale values (1); update line set sale = 1', [1, 9]],
    ['a line that leaves', 'update line set sale = null', [9]],
    ['a deleted line', 'delete from line', [9]],
    ['a row below a line', 'update allowance set pct = 7', [9]],
    ['a row below a line that is deleted', 'delete from allowance', [9]],
    ['a deleted document, with its lines', 'delete from sale', [9]],
    ['a document whose key changes', 'update sale set id = 8', [9, 8]],
    ['a change that a savepoint takes back', 'savepoint a; update sale set state = $$x$$; rollback to a', []],
    [
      'a change after a savepoint that was taken back',
      'savepoint a; update line set amount = 2; rollback to a; update line set amount = 3',
      [9],
    ],
    [
      'MERGE',
      'merge into line using (values (90)) v(id) on v.id = line.id when matched then update set amount = 4',
      [9],
    ],
    ['INSERT ... ON CONFLICT', 'insert into line values (90, 9, 3) on conflict (id) do update set amount = 3', [9]],
    [
      'a change of a table without a document',
      'insert into line values (1, null, 1); insert into allowance values (1, 1)',
      [],
    ],
  ])('%s', async (_, statements, expected) => {
    for (const isolation of ['read committed', 'repeatable read', 'serializable']) {
      const { pool, ids } = await setupSale()
      await pool.query(`begin isolation level ${isolation}; ${statements}; commit`)
      expect(await ids()).toEqual(expected)
    }
  })

  test('each transaction writes its own row, also in the same session', async () => {
    const { pool, ids } = await setupSale()
    await pool.query('update sale set state = $$a$$')
    await pool.query('update sale set state = $$b$$')
    expect(await ids()).toEqual([9, 9])
  })

  test('TRUNCATE of a header or of a child writes a row for each document', async () => {
    const { pool, ids } = await setupSale()
    await pool.query('truncate allowance')
    await pool.query('insert into sale values (1)')
    expect(await ids()).toEqual([9, 1])
    await pool.query('truncate sale cascade')
    expect((await ids()).slice(2).sort()).toEqual([1, 9])
  })

  test('COPY', async () => {
    const { pool, ids } = await setupSale()
    await pool.query(`copy sale from program 'printf "1\\tx\\n2\\ty\\n"'`)
    expect(await ids()).toEqual([1, 2])
  })

  test('sessions that change one document neither wait for nor fail each other, at any isolation level', async () => {
    const { pool, ids } = await setupSale()
    await pool.query('insert into line select n, 9, 0 from generate_series(1, 6) n; truncate outbox')
    await Promise.all(
      ['read committed', 'repeatable read', 'serializable'].flatMap((isolation, i) =>
        [1, 2].map(async (n) => {
          const session = await pool.connect()
          try {
            await session.query(`begin isolation level ${isolation}; set local lock_timeout = '3s'`)
            await session.query('update line set amount = amount + 1 where id = $1', [2 * i + n])
            await session.query('select pg_sleep(0.1)')
            await session.query('commit')
          } finally {
            session.release()
          }
        }),
      ),
    )
    expect(await ids()).toEqual([9, 9, 9, 9, 9, 9])
  })
})

test('a key of several columns, with lines and rows below the lines', async () => {
  const { pool } = await setup(
    `create table head (tenant int, "No" varchar(10), total numeric, primary key (tenant, "No"));
     create table pos (t int, "No" varchar(10), line int, primary key (t, "No", line), foreign key (t, "No") references head);
     create table extra (t int, no varchar(10), line int, foreign key (t, no, line) references pos)`,
    'head',
    ['pos(t, "No")', 'extra(t, no, line)'],
  )
  await pool.query(`begin; insert into head values (3, 'A-7'); insert into pos values (3, 'A-7', 1); commit`)
  await pool.query(`insert into extra values (3, 'A-7', 1), (null, 'A-7', 1)`)
  const row = {
    type: 'order',
    key: '3/A-7',
    payload: { id: { tenant: 3, No: 'A-7' }, captured_in: expect.any(String) },
  }
  expect(await readRows(pool)).toEqual([row, row])
})

test('a reference with a condition, without a foreign key', async () => {
  const { pool, ids } = await setup(
    `create table so (name varchar(20) primary key); create table po (name varchar(20) primary key);
     create table tax (id int primary key, parent varchar(140), parenttype text, amount int); insert into so values ('S-1')`,
    'so',
    [`tax(parent) where parenttype = 'Sales Order'`],
  )
  await pool.query(`insert into tax values (1, 'S-1', 'Sales Order', 1), (2, 'P-1', 'Purchase Order', 1)`)
  await pool.query(`update tax set parenttype = 'Purchase Order' where id = 1`)
  await pool.query(`update tax set amount = 2`)
  expect(await ids()).toEqual(['S-1', 'S-1'])
})

test('a condition may name a column like our variable, and have texts between dollars', async () => {
  const { pool, ids } = await setup(
    'create table so (id int primary key); create table tax (so int, keys text)',
    'so',
    ['tax(so) where keys = $$a$$'],
  )
  await pool.query(`insert into tax values (1, 'a'), (2, 'b')`)
  expect(await ids()).toEqual([1])
})

test('a reference to another unique column than the key, and to a key of another type that names the same rows', async () => {
  const { pool, ids } = await setup(
    `create table doc (id numeric primary key, no char(8) unique); insert into doc values (1.00, 'A'), (2, 'B');
     create table by_no (no char(8) references doc (no), n int); create table by_id (doc int, n int)`,
    'doc',
    ['by_no(no)', 'by_id(doc)'],
  )
  await pool.query(
    `begin; insert into by_no values ('A', 1); insert into by_id values (1, 1); update doc set no = no where id = 1; commit`,
  )
  expect(await ids()).toEqual([1])
})

test('a table that refers to itself or by two columns', async () => {
  const { pool, ids } = await setup(
    `create table doc (id int primary key, parent int references doc, n int); insert into doc values (1, null), (2, 1);
     create table link (a int references doc, b int references doc)`,
    'doc',
    ['doc(parent)', 'link(a)', 'link(b)'],
  )
  await pool.query('update doc set n = 1 where id = 2')
  await pool.query('insert into link values (1, 2)')
  expect(await ids()).toEqual([2, 1, 1, 2])
})

test('rows are captured through any partition, also a new one', async () => {
  const { pool, ids } = await setup(
    `create table sale (id int primary key); create table line (id int, sale int, primary key (id, sale)) partition by range (sale);
     create table line_1 partition of line for values from (0) to (10)`,
    'sale',
    ['line(sale)'],
  )
  await pool.query('create table line_2 partition of line for values from (10) to (20)')
  await pool.query('insert into line values (1, 1)')
  await pool.query('insert into line_2 values (2, 12)')
  await pool.query('update line set sale = 13 where id = 1')
  expect(await ids()).toEqual([1, 12, 1, 13])
})

test('two types of one table have their own rows', async () => {
  const { pool } = await setup(sale, 'sale', children)
  await captureDocuments(pool, 'sale', { type: 'total' })
  await pool.query('update sale set state = $$x$$')
  expect((await readRows(pool)).map(({ type }) => type).sort()).toEqual(['order', 'total'])
})

test('the file may run again, and one statement removes everything', async () => {
  const { pool, sql, ids } = await setupSale()
  await pool.query(`begin; ${sql} commit`)
  const [remove = ''] = /drop function (?!if).*cascade;/.exec(sql) ?? []
  await pool.query(remove)
  await pool.query('update sale set state = $$x$$')
  expect(await ids()).toEqual([])
  const { rows } = await pool.query(
    `select from pg_trigger where not tgisinternal and tgrelid in ('sale'::regclass, 'line'::regclass)`,
  )
  expect(rows).toEqual([])
})

test('an error in the outbox fails the statement of the ERP', async () => {
  const { pool } = await setupSale()
  await pool.query('alter table outbox add constraint none check (id < 0) not valid')
  await expect(pool.query('update sale set state = $$x$$')).rejects.toThrow('"none"')
})

test('a role that writes to the tables is granted what the trigger needs, and no more', async () => {
  await createRole(await anyPool(), 'erp_of_capture')
  const { pool, sql, ids } = await setup(
    `${sale}; grant update, select on sale to erp_of_capture; grant select on line to erp_of_capture`,
    'sale',
    children,
  )
  expect(sql).toContain('grant insert on public.outbox to erp_of_capture;\n')
  await pool.query('set role erp_of_capture; update sale set state = $$x$$; reset role')
  expect(await ids()).toEqual([9])
  await pool.query('set role erp_of_capture')
  await expect(pool.query('select from outbox')).rejects.toThrow('permission denied')
})

async function anyPool(): Promise<pg.Pool> {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  return database.pool
}

test('names with capitals, quotes, dots and line breaks', async () => {
  const { pool, ids } = await setup(
    `create table "It's ""A""" ("the id" int primary key); create schema "s.x";
     create table "s.x"."line\n--" ("up to" int references "It's ""A""")`,
    `It's "A"`,
    ['"s.x"."line\n--"("up to")'],
  )
  await pool.query(`insert into "It's ""A""" values (1)`)
  await pool.query(`insert into "s.x"."line\n--" values (1)`)
  expect(await ids()).toEqual([1, 1])
})

describe('refused', () => {
  test.each([
    ['line(sale', /must be TABLE\(COLUMN\)/],
    ['lines(sale)', /there is no table lines/],
    ['line(order_id)', /public\.line has no column "order_id"/],
    ['line(amount)', /foreign key refers to public\.unit, which is not a part of the document public\.sale/],
    ['line(sale, amount)', /foreign key refers to public\./],
    ['part(line)', /foreign key refers to public\.line, which is not a part of the document/],
    ['part(name)', /public\.part\.name is text and public\.sale\.id is bigint/],
    ['part(a, b)', /must have as many columns as public\.sale\(id\)/],
    ['part(line) references line(id)', /public\.line is not a part of the document/],
    ['part(a) where nothing = 1', /the condition "nothing = 1" fails: column "nothing" does not exist/],
    ['sale_view(id)', /is not a table/],
    ['heir_of(id)', /has inheriting tables/],
  ])('--child %s', async (child, why) => {
    const database = await createDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    await database.pool.query(`create table sale (id bigint primary key); create table unit (id int primary key);
      create table line (id int primary key, sale bigint references sale, amount int references unit);
      create table part (line int references line, name text, a int, b int); create view sale_view as select * from sale;
      create table heir_of (id int); create table heir () inherits (heir_of)`)
    await expect(captureDocuments(database.pool, 'sale', { children: [child] })).rejects.toThrow(why)
  })

  test.each([
    ['create table sale (id int)', /has no primary key/],
    ['create table sale (id timestamptz primary key)', /public\.sale\.id has the type timestamp with time zone/],
    [
      `create collation ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); create table sale (id text collate ci primary key)`,
      /takes different texts for equal/,
    ],
    ['create table sale (id int primary key); drop index outbox_captured', /outboxd migrate --outbox/],
    ['create table sale (id int primary key); drop table outbox', /outboxd migrate --outbox/],
  ])('%s', async (ddl, why) => {
    const database = await createDatabase()
    onTestFinished(() => database[Symbol.asyncDispose]())
    await database.pool.query(ddl)
    await expect(captureDocuments(database.pool, 'sale')).rejects.toThrow(why)
  })
})
