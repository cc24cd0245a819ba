import type pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { asInstaller, captureFile, installCapture } from '../../support/changeCapture.ts'
import { createDatabase } from '../../support/database.ts'

test('an insert is captured with the digits of its amounts, its type and its key', async () => {
  const { pool, captured } = await setup()
  await pool.query(`insert into "Sales"."Order" values (1, 'C1', 1234.50, 'a', 'note', '2026-11-20 10:00+00')`)
  expect(await captured()).toEqual([
    {
      type: 'data',
      key: 'C1',
      payload: '{"amount": 1234.50, "orderedAt": "2026-11-20T10:00:00+00:00", "customerId": "C1"}',
    },
  ])
})

test('an update is captured only where a watched column changed', async () => {
  const { pool, captured } = await setup()
  await insertOrders(pool, 3)
  await pool.query('truncate outbox')
  await pool.query(`update "Sales"."Order" set note = 'other'`)
  await pool.query(`update "Sales"."Order" set "Amount" = "Amount"`)
  expect(await captured()).toEqual([])
  await pool.query(`update "Sales"."Order" set "Amount" = case when id = 2 then 9.90 else "Amount" end, note = 'x'`)
  expect((await captured()).map(({ payload }) => JSON.parse(payload).amount)).toEqual([9.9])
  await pool.query(`update "Sales"."Order" set reference = null where id = 1`)
  await pool.query(`update "Sales"."Order" set reference = null where id = 1`)
  expect(await captured()).toHaveLength(2)
})

test('a bulk update of 5,000 rows costs one pass: one insert of all that changed, in the order of the primary key', async () => {
  const { pool } = await setup()
  await insertOrders(pool, 5_000)
  await pool.query('truncate outbox restart identity')
  await pool.query(`update "Sales"."Order" set "Amount" = "Amount" + 1 where id % 2 = 0`)
  const { rows } = await pool.query(`select count(*)::int as n, count(distinct cmin::text)::int as statements,
    bool_and((payload ->> 'amount')::numeric = id * 2 + 1) as ordered from outbox`)
  expect(rows).toEqual([{ n: 2_500, statements: 1, ordered: true }])
})

test('a bulk update in a session that updated a single row before is planned anew: no join of each row with each', async () => {
  const { pool } = await setup()
  const session = await pool.connect()
  onTestFinished(() => session.release())
  await insertOrders(pool, 1_000)
  const plans = await explained(session, async () => {
    await session.query(`update "Sales"."Order" set "Amount" = 1 where id = 1`)
    await session.query(`update "Sales"."Order" set "Amount" = "Amount" + 1`)
  })
  const bulk = plans.filter((plan) => plan.includes('insert into public.outbox')).at(-1)
  expect(bulk).toMatch(/(Hash|Merge) .*Join/)
})

test('a changed primary key, an upsert and rows outside the condition', async () => {
  const { pool, captured } = await setup(`, condition => $$n."Amount" > 0 and n.note not like '%no%' -- %s$$`)
  await insertOrders(pool, 2)
  await pool.query(`update "Sales"."Order" set id = 7 where id = 1`)
  await pool.query(`insert into "Sales"."Order" values (2, 'C1', 5, 'a', '', now()), (3, 'C1', 6, 'a', '', now())
    on conflict (id) do update set "Amount" = excluded."Amount"`)
  await pool.query(`insert into "Sales"."Order" values (4, 'C1', 0, 'a', '', now())`)
  expect((await captured()).map(({ payload }) => JSON.parse(payload).amount).sort()).toEqual([1, 1, 2, 5, 6])
})

test('who writes the ERP table needs no rights on the outbox', async () => {
  const { pool, captured } = await setup()
  await pool.query(`grant usage on schema "Sales" to pg_monitor; grant insert on "Sales"."Order" to pg_monitor`)
  await pool.query(`begin; set local role pg_monitor;
    insert into "Sales"."Order" values (1, 'C1', 1, 'a', '', now()); commit`)
  expect(await captured()).toHaveLength(1)
})

test('without a list the payload is the whole row; installing again replaces', async () => {
  const { pool, captured } = await setup()
  await asInstaller(pool, `select outboxd_capture.install('"Sales"."Order"', type => 'order', watched => '{note}')`)
  await insertOrders(pool, 1)
  const [only] = await captured()
  expect(only).toMatchObject({ type: 'order', key: null })
  expect(Object.keys(JSON.parse(only?.payload ?? '')).sort()).toEqual([
    'Amount',
    'customer_no',
    'id',
    'note',
    'ordered_at',
    'reference',
  ])
})

test('what cannot work is refused in words', async () => {
  const { pool } = await setup()
  const refusal = (args: string) => expect(asInstaller(pool, `select outboxd_capture.install(${args})`)).rejects
  await refusal(`'"Sales"."Order"', 'data', '{Amuont, note}'`).toThrow('"Sales"."Order" has no column Amuont')
  await refusal(`'"Sales"."Order"', 'data', '{}'`).toThrow('watched is empty')
  await refusal(`'"Sales"."Order"', 'data', '{note}', payload => '{a}'`).toThrow('payload must be pairs')
  await pool.query('create table heap (a int)')
  await refusal(`'heap', 'data', '{a}'`).toThrow('heap has no primary key')
})

test('removed, nothing is captured any more, and nothing is left', async () => {
  const { pool, captured } = await setup()
  await asInstaller(pool, captureFile('remove'))
  await insertOrders(pool, 1)
  expect(await captured()).toEqual([])
  const { rows } = await pool.query(`select from pg_trigger where tgname like 'outboxd_capture%'
    union all select from pg_namespace where nspname = 'outboxd_capture'`)
  expect(rows).toEqual([])
})

describe('the ERP is never harmed', () => {
  test('a json column can be watched: it has no equality, and a change of it is noticed all the same', async () => {
    const { pool, captured } = await setupTable('id int primary key, doc json, note text', `'{doc}'`)
    await pool.query(`insert into item values (1, '{"a":1}')`)
    await pool.query(`update item set doc = '{"a":2}'; update item set note = 'x'`)
    expect((await captured()).map(({ payload }) => JSON.parse(payload).doc)).toEqual([{ a: 1 }, { a: 2 }])
  })

  test('types that cannot be compared, or call different things equal, are watched too', async () => {
    const { pool, captured } = await setupTable(
      'id int primary key, at point, area box, doc xml, n numeric, o jsonb, made int generated always as (id * 2) stored',
      `'{at, area, doc, n, o, made}'`,
    )
    await pool.query(`insert into item values (1, '(1,2)', '(0,0),(2,2)', '<a/>', 1.5, '{}')`)
    for (const change of [`at = '(1,3)'`, `area = '(0,0),(1,4)'`, `doc = '<b/>'`, `n = 1.50`, `o = '[]'`])
      await pool.query(`update item set ${change}`)
    await pool.query(`update item set at = at, area = area, doc = doc, n = n, o = o`)
    expect(await captured()).toHaveLength(6)
    expect(await noted(pool)).toEqual([])
  })

  test('a draft that is released later is captured, although its status is not watched', async () => {
    const { pool, captured } = await setupTable(
      'id int primary key, status text, amount numeric',
      `'{amount}', condition => $$status = 'released'$$`,
    )
    await pool.query(`insert into item values (1, 'draft', 5), (2, 'draft', 6)`)
    expect(await captured()).toEqual([])
    await pool.query(`update item set status = 'released' where id = 1`)
    await pool.query(`update item set status = 'released'`)
    await pool.query(`update item set status = 'paid'`)
    expect((await captured()).map(({ payload }) => JSON.parse(payload).id)).toEqual([1, 2])
  })

  test.each([
    ['drops', 'alter table item drop column amount', 'alter table item add column amount numeric default 8'],
    ['renames', 'alter table item rename amount to net', 'alter table item rename net to amount'],
  ])('a column that the ERP %s: its statements succeed, the rows are noted and captured later', async (_, harm, mend) => {
    const { pool, captured } = await setupTable('id int primary key, amount numeric, note text', `'{amount}'`, {
      payload: '{id, id, amount, amount}',
    })
    await pool.query(`insert into item values (1, 5), (2, 6)`)
    await pool.query(harm)
    await pool.query(`insert into item (id) values (3)`)
    await pool.query(`update item set note = 'x' where id = 1`)
    expect(await captured()).toHaveLength(2)
    expect(await noted(pool)).toEqual([
      { table: 'item', operation: 'INSERT', key: { id: 3 }, sqlstate: '42703' },
      { table: 'item', operation: 'UPDATE', key: { id: 1 }, sqlstate: '42703' },
    ])
    expect(await trouble(pool)).toMatchObject([{ table_name: 'public.item', notes: '2', has_unknown: false }])
    expect(await retry(pool)).toMatchObject([{ captured: 0, failed: 2, reason: expect.stringContaining('amount') }])

    await pool.query(mend)
    expect(await retry(pool)).toMatchObject([{ erp_table: 'public.item', captured: 2, failed: 0, gone: 0, busy: 0 }])
    expect((await captured()).map(({ payload }) => JSON.parse(payload).id)).toEqual([1, 2, 3, 1])
    expect(await trouble(pool)).toEqual([])
  })

  test('a column whose type the ERP changes, in the sessions that have written before too', async () => {
    const { pool, captured } = await setupTable('id int primary key, amount numeric', `'{amount}'`)
    const session = await pool.connect()
    onTestFinished(() => session.release())
    await session.query(`insert into item values (1, 5)`)
    await session.query(`update item set amount = 6`)
    await pool.query(`alter table item alter amount type text`)
    await session.query(`insert into item values (2, 'seven')`)
    await session.query(`update item set amount = 'eight' where id = 1`)
    await retry(pool)
    expect(new Set((await captured()).map(({ payload }) => JSON.parse(payload).amount))).toEqual(
      new Set([5, 6, 'seven', 'eight']),
    )
  })

  test('a renamed key column: the rows are noted by what the key is called by then', async () => {
    const { pool } = await setupTable('id int primary key, amount numeric', `'{amount}'`)
    await pool.query('alter table item rename id to number')
    await pool.query('insert into item values (1, 5); update item set amount = 6')
    expect(await noted(pool)).toMatchObject([
      { operation: 'INSERT', key: { number: 1 } },
      { operation: 'UPDATE', key: { number: 1 } },
    ])
    expect(await retry(pool)).toMatchObject([{ captured: 1 }])
  })

  test('a condition that fails for one row: the statement succeeds, all its rows are noted, retry takes each by itself', async () => {
    const { pool, captured } = await setupTable(
      'id int primary key, amount int',
      `'{amount}', condition => '10 / amount > 0'`,
    )
    await pool.query(`insert into item values (1, 2), (2, 0), (3, 3)`)
    expect(await captured()).toEqual([])
    expect(await retry(pool)).toMatchObject([{ captured: 2, failed: 1, reason: 'division by zero' }])
    expect((await captured()).map(({ payload }) => JSON.parse(payload).id)).toEqual([1, 3])
    expect((await pool.query(`select outboxd_capture.dismiss('item')`)).rows).toEqual([{ dismiss: '1' }])
    expect(await trouble(pool)).toEqual([])
  })

  test('an outbox that is gone, or locked for longer than a second, or refuses the row', async () => {
    const { pool, captured } = await setupTable('id int primary key, amount int', `'{amount}'`)
    await pool.query(`alter table outbox rename to away`)
    await pool.query(`insert into item values (1, 1)`)
    await pool.query(`alter table away rename to outbox`)
    const locker = await pool.connect()
    await locker.query('begin; lock outbox in access exclusive mode')
    await pool.query(`insert into item values (2, 1)`)
    await locker.query('rollback')
    locker.release()
    await pool.query(`alter table outbox add check (payload ->> 'amount' <> '3')`)
    await pool.query(`insert into item values (3, 3)`)
    expect((await noted(pool)).map(({ sqlstate }) => sqlstate)).toEqual(['42P01', '55P03', '23514'])
    await pool.query('update item set amount = 4 where id = 3')
    expect(await retry(pool)).toMatchObject([{ captured: 3 }])
    expect(await captured()).toHaveLength(4)
  })

  test.each([
    ['rows of a partitioned table', 'insert into item select n, n from generate_series(1, 8) n', false],
    [
      'statements of one transaction',
      'insert into item values (1, 1); insert into item values (2, 2); update item set amount = 3',
      false,
    ],
    ['rows whose notes are locked, too', 'insert into item select n, n from generate_series(1, 8) n', true],
  ])('a locked outbox is waited for once in a transaction: %s', async (what, statements, notesToo) => {
    const { pool } = await setupTable(
      what.startsWith('statements')
        ? 'id int primary key, amount int'
        : 'id int primary key, amount int) partition by range (id',
      `'{amount}'`,
      {
        before: what.startsWith('statements')
          ? ''
          : 'create table item_1 partition of item for values from (0) to (100)',
      },
    )
    const locker = await pool.connect()
    onTestFinished(() => locker.release(true))
    await locker.query(`begin; lock outbox in access exclusive mode`)
    if (notesToo) await locker.query('lock outboxd_capture.error in access exclusive mode')
    const began = performance.now()
    await pool.query(`begin; ${statements}; commit`)
    expect(performance.now() - began).toBeLessThan(notesToo ? 5_000 : 3_000)
    await locker.query('rollback')
    if (notesToo) return
    expect(new Set((await noted(pool)).map(({ sqlstate }) => sqlstate))).toEqual(new Set(['55P03']))
    await retry(pool)
    expect(await noted(pool)).toEqual([])
    await pool.query(`insert into item values (50, 50)`)
    expect(await noted(pool)).toEqual([])
  })

  test('an ASSERT that fails in a trigger of the outbox, and in one of the notes', async () => {
    const { pool } = await setupTable('id int primary key, amount int', `'{amount}'`)
    await pool.query(`create function no() returns trigger language plpgsql as $$begin assert false, 'no'; return new; end$$;
      create trigger no before insert on outbox for each row execute function no()`)
    await pool.query('insert into item values (1, 1)')
    expect(await noted(pool)).toMatchObject([{ key: { id: 1 }, sqlstate: 'P0004' }])
    expect(await retry(pool)).toMatchObject([{ failed: 1, reason: 'no' }])
    await pool.query('create trigger no before insert on outboxd_capture.error for each row execute function no()')
    await pool.query('insert into item values (2, 2)')
    expect(await noted(pool)).toHaveLength(1)
  })

  test.each([
    ['outbox', ''],
    [
      'outbox_1',
      'drop table outbox; create table outbox (id bigint generated always as identity, type text, key text, payload jsonb, created_at timestamptz default now()) partition by list (type); create table outbox_1 partition of outbox default',
    ],
  ])('a deferrable constraint of %s is refused, and told if it comes later: it would fail where nothing can be noted', async (table, first) => {
    const { pool } = await setupTable('id int primary key, amount int', `'{amount}'`, { first })
    expect(await trouble(pool)).toEqual([])
    await pool.query(`alter table ${table} add constraint once unique (key, created_at) deferrable`)
    await expect(asInstaller(pool, `select outboxd_capture.install('item', 'data', '{amount}')`)).rejects.toThrow(
      'a constraint of public.outbox is deferrable',
    )
    expect(await trouble(pool)).toMatchObject([
      { table_name: 'public.item', reason: expect.stringContaining('deferrable') },
    ])
  })

  test.each([
    [
      'a trigger',
      `create function swallow() returns trigger language plpgsql as $$begin return null; end$$;
      create trigger swallow before insert on outbox for each row execute function swallow()`,
      'drop trigger swallow on outbox',
    ],
    ['a rule', 'create rule swallow as on insert to outbox do instead nothing', 'drop rule swallow on outbox'],
  ])('%s that keeps rows out of the outbox is refused, and what it keeps out is noted', async (what, swallow, mend) => {
    const { pool, captured } = await setupTable('id int primary key, amount int', `'{amount}'`)
    await pool.query('insert into item values (1, 1); truncate outbox')
    await pool.query(swallow)
    await expect(asInstaller(pool, `select outboxd_capture.install('item', 'data', '{amount}')`)).rejects.toThrow(
      /public\.outbox/,
    )
    await pool.query('update item set id = 1; insert into item values (2, 2); update item set amount = 3 where id = 1')
    expect(await noted(pool)).toMatchObject([
      { operation: 'INSERT', key: { id: 2 } },
      { operation: 'UPDATE', key: { id: 1 } },
    ])
    if (what === 'a rule') expect((await trouble(pool)).map(({ reason }) => reason).join()).toContain('has a rule')
    expect(await retry(pool)).toMatchObject([{ captured: 0, failed: 2 }])
    await pool.query(mend)
    expect(await retry(pool)).toMatchObject([{ captured: 2 }])
    expect(await captured()).toHaveLength(2)
  })

  test('a note that cannot be written fails no statement of a client that has no such letters', async () => {
    const { pool } = await setupTable('id int primary key, amount int) with (fillfactor = 90', `'{amount}'`, {
      before: 'alter table item rename to "sales_Ж"',
      installOn: '"sales_Ж"',
    })
    await pool.query(`alter table outbox rename to away; alter table outboxd_capture.error rename to gone`)
    const client = await pool.connect()
    onTestFinished(() => client.release(true))
    const { rows } = await pool.query(`select 'insert into ' || '"sales_Ж"'::regclass::oid::text as oid`)
    await client.query(
      `do $$begin execute format('create view plain as select * from %s', '${rows[0].oid.split(' ')[2]}'::regclass); end$$; set client_encoding = latin1`,
    )
    await client.query('insert into plain values (1, 1)')
    expect((await client.query('select from plain')).rowCount).toBe(1)
  })

  // Ours, of which any session may set the text; then those of Postgres that any session may set and that change how SQL is read.
  test.each([
    ['outboxd_capture.deepest_OID', 'x'],
    ['outboxd_capture.deepest_OID', '99999999999999999999'],
    ['outboxd_capture.deepest_OID', '-1'],
    ['outboxd_capture.locked', 'notes', 'noted'],
    ['outboxd_capture.locked', 'x', 'noted'],
    [
      'standard_conforming_strings=off backslash_quote=off quote_all_identifiers=on transform_null_equals=on array_nulls=off DateStyle=German IntervalStyle=iso_8601 bytea_output=escape xmloption=document search_path= row_security=off lock_timeout=1 plpgsql.extra_errors=all default_transaction_isolation=serializable',
      '',
    ],
  ])('a session that has set %s to %s writes as ever', async (name, value, noted = 'captured') => {
    const { pool, captured } = await setupTable('id int primary key, amount numeric, on_day date', `'{amount}'`)
    const { oid } = (await pool.query(`select 'item'::regclass::oid::text as oid`)).rows[0]
    const client = await pool.connect()
    onTestFinished(() => client.release(true))
    for (const setting of name.includes('=') ? name.split(' ') : [`${name.replace('OID', oid)}=${value}`])
      await client.query(`select set_config($1, $2, false)`, setting.split('='))
    await client.query(
      `insert into public.item values (1, 1.10, date '2026-11-23'); update public.item set amount = 2.20`,
    )
    const notes = (await pool.query('select from outboxd_capture.error')).rowCount
    if (noted === 'noted') return void expect(notes).toBeGreaterThan(0)
    expect(notes).toBe(0)
    expect((await captured()).map(({ payload }) => payload)).toEqual([
      '{"id": 1, "amount": 1.10, "on_day": "2026-11-23"}',
      '{"id": 1, "amount": 2.20, "on_day": "2026-11-23"}',
    ])
  })

  test('a session’s settings neither change how a condition is read nor what is sent', async () => {
    const { pool, captured } = await setupTable(
      `id int primary key, note text, amount int, at moment, off_at timestamptz, on_day date, span spell, ratio real_number, ratios real_number[], dots texts, bytes raw`,
      `'{amount, ratio}', key => 'on_day', condition => $$n.note ~ '^\\w*$' and (n.note = null) is null$$`,
      {
        first: `create domain moment as timestamptz; create domain spell as interval; create domain real_number as float8; create domain raw as bytea;
        create domain texts as text[]`,
      },
    )
    const client = await pool.connect()
    onTestFinished(() => client.release(true))
    const write = async (id: number) => {
      await client.query(
        `insert into item values (${id}, 'abc', 1, timestamptz '2026-03-04 05:06:07+00', '2026-03-04 05:06:07+00', date '2026-03-04',
        make_interval(days => -1, hours => 2), 0.1::float8, array[0.1::float8], array['NULL', 'a'], decode('005c', 'hex'))`,
      )
      await client.query(`update item set ratio = 0.1::float8 + 1e-16::float8 * 3 where id = ${id}`)
    }
    await write(1)
    for (const setting of [
      'standard_conforming_strings=off',
      'transform_null_equals=on',
      'DateStyle=SQL, DMY',
      'TimeZone=Asia/Tokyo',
      'IntervalStyle=sql_standard',
      'extra_float_digits=-15',
      'bytea_output=escape',
      'array_nulls=off',
      'quote_all_identifiers=on',
    ])
      await client.query('select set_config($1, $2, false)', setting.split('='))
    await write(2)
    expect(await noted(pool)).toEqual([])
    const rows = await captured()
    expect(rows).toHaveLength(4)
    expect(rows.slice(2)).toEqual(
      rows.slice(0, 2).map((row) => ({ ...row, payload: row.payload.replace('"id": 1', '"id": 2') })),
    )
    expect(rows[0]).toMatchObject({
      key: '2026-03-04',
      payload: expect.stringContaining('"2026-03-04T05:06:07+00:00"'),
    })
  })

  test('a statement that changes no row is not noted, although the outbox refuses', async () => {
    const { pool } = await setupTable('id int primary key, amount int', `'{amount}'`)
    await pool.query(`create function no() returns trigger language plpgsql as $$begin raise 'no'; end$$;
      create trigger no before insert on outbox for each statement execute function no()`)
    await pool.query('update item set amount = 1')
    expect(await noted(pool)).toEqual([])
  })

  test('where not even the note can be written the statement succeeds, and the server’s log says so', async () => {
    const { pool } = await setupTable('id int primary key, amount int', `'{amount}'`)
    await pool.query(`alter table outbox rename to away; alter table outboxd_capture.error rename to gone`)
    const client = await pool.connect()
    const warnings: string[] = []
    client.on('notice', ({ message }) => warnings.push(message ?? ''))
    const { oid } = (await client.query(`select 'item'::regclass::oid::text as oid`)).rows[0]
    await client.query('set client_min_messages = log')
    await client.query(`insert into item values (1, 1)`)
    client.release(true)
    expect(warnings.join()).toContain(
      `a change of the table ${oid} was not captured (42P01) and could not be noted (42P01)`,
    )
  })

  test('what is rolled back is not noted, and the notes have a bound', async () => {
    const { pool } = await setupTable('id int primary key, amount int', `'{amount}'`)
    await pool.query(`alter table outbox rename to away`)
    await pool.query(`begin; insert into item values (1, 1); rollback`)
    expect(await noted(pool)).toEqual([])
    await pool.query(`insert into item select n, n from generate_series(1, 10500) n`)
    await pool.query(`insert into item values (0, 0)`)
    expect(await trouble(pool)).toMatchObject([{ notes: '10002', has_unknown: true }])
    await pool.query(`select setval('outboxd_capture.error_id_seq', 200000)`)
    await pool.query(`insert into item values (-1, 0)`)
    await pool.query(`insert into item values (-2, 0)`)
    expect(await trouble(pool)).toMatchObject([{ notes: '10004', has_unknown: true }])
  })

  test('rows of a partitioned table, by the parent, directly, and into a partition that is attached later', async () => {
    const { pool, captured } = await setupTable(
      'id int, region text, amount int, primary key (id, region)) partition by list (region',
      `'{amount}', condition => 'amount > 0'`,
      { before: `create table item_a partition of item for values in ('a')` },
    )
    await pool.query(`insert into item values (1, 'a', 1)`)
    await pool.query(`insert into item_a values (2, 'a', 2)`)
    await pool.query(`create table item_b (region text not null, amount int, id int not null, primary key (id, region));
      alter table item attach partition item_b for values in ('b')`)
    await pool.query(`create table item_c partition of item for values in ('c')`)
    await pool.query(`insert into item_b (id, region, amount) values (3, 'b', 3)`)
    await pool.query(`insert into item values (4, 'b', 4), (5, 'c', 5), (6, 'c', 0)`)
    expect((await captured()).map(({ payload }) => JSON.parse(payload).id)).toEqual([1, 2, 3, 4, 5])
    await pool.query(`update item_b set amount = 30 where id = 3`)
    await pool.query(`update item set amount = amount`)
    await pool.query(`update item set amount = 10 where id = 1`)
    expect((await captured()).slice(5).map(({ payload }) => JSON.parse(payload).amount)).toEqual([30, 10])
    await pool.query(`alter table outbox rename to away; insert into item_b (id, region, amount) values (9, 'b', 9);
      alter table away rename to outbox`)
    expect(await noted(pool)).toMatchObject([{ table: 'item', key: { id: 9, region: 'b' } }])
    expect(await retry(pool)).toMatchObject([{ captured: 1 }])
    expect(await trouble(pool)).toEqual([])
  })

  test('one partition alone is captured whichever name it is written by', async () => {
    const { pool, captured } = await setupTable(
      'id int primary key, amount int) partition by range (id',
      `'{amount}'`,
      {
        before: `create table item_1 partition of item for values from (0) to (10);
        create table item_2 partition of item for values from (10) to (20)`,
        installOn: 'item_1',
      },
    )
    await pool.query(`insert into item values (1, 1), (11, 11); insert into item_1 values (2, 2)`)
    expect((await captured()).map(({ payload }) => JSON.parse(payload).id)).toEqual([1, 2])
  })

  test('tables that inherit: those that are there are covered, one that comes later is told', async () => {
    const { pool, captured } = await setupTable('id int primary key, amount int', `'{amount}'`, {
      before: 'create table old_item (reason text) inherits (item)',
    })
    await pool.query(`insert into item values (1, 1); insert into old_item values (2, 2, 'x')`)
    await pool.query(`update item set amount = amount + 1`)
    await pool.query(`update old_item set amount = amount + 1`)
    expect((await captured()).map(({ payload }) => JSON.parse(payload).id)).toEqual([1, 2, 1, 2, 2])
    await pool.query(`create table new_item () inherits (item)`)
    expect(await trouble(pool)).toMatchObject([
      { table_name: 'public.item', reason: expect.stringContaining('new_item') },
    ])
    await asInstaller(pool, `select outboxd_capture.install('item', 'data', '{amount}')`)
    await pool.query(`insert into new_item values (3, 3)`)
    expect(await captured()).toHaveLength(6)
    expect(await trouble(pool)).toEqual([])
  })

  test('a table that is dropped and created anew, or attached to another, or whose trigger is switched off, is told', async () => {
    const { pool, captured } = await setupTable('id int primary key, amount int', `'{amount}'`)
    await pool.query(`drop table item; create table item (id int primary key, amount int)`)
    expect(await trouble(pool)).toMatchObject([
      { table_name: 'public.item', reason: expect.stringContaining('dropped') },
    ])
    await asInstaller(pool, `select outboxd_capture.install('item', 'data', '{amount}')`)
    await pool.query(`insert into item values (1, 1)`)
    expect(await captured()).toHaveLength(1)
    expect(await trouble(pool)).toEqual([])
    const { rows } = await pool.query(
      `select from pg_proc where pronamespace = 'outboxd_capture'::regnamespace and prorettype = 'trigger'::regtype`,
    )
    expect(rows).toHaveLength(1)

    await pool.query(`alter table item disable trigger outboxd_capture_update`)
    expect(await trouble(pool)).toMatchObject([{ reason: expect.stringContaining('switched off') }])
    await pool.query(`alter table item enable trigger outboxd_capture_update;
      create table whole (id int primary key, amount int) partition by range (id);
      alter table whole attach partition item for values from (0) to (10)`)
    expect(await trouble(pool)).toMatchObject([{ reason: expect.stringContaining('partition') }])
    await asInstaller(pool, `select outboxd_capture.install('item', 'data', '{amount}')`)
    await pool.query(`insert into whole values (2, 2)`)
    expect(await captured()).toHaveLength(2)
    expect(await trouble(pool)).toEqual([])
  })

  test.each([
    ['renamed', 'alter table item rename to old_item', 'it is old_item now: install it again'],
    [
      'swapped by its name',
      'alter table item rename to old_item; create table item (like old_item including all)',
      'it is old_item now, and nothing captures the table that bears its name now',
    ],
    [
      'swapped by its schema',
      'create schema archive; alter table item set schema archive; create table item (like archive.item including all)',
      'it is archive.item now, and nothing captures the table that bears its name now',
    ],
    [
      'replaced by a view of its name',
      'alter table item rename to old_item; create view item as table old_item',
      'it is old_item now, and nothing captures',
    ],
    ['given another column', 'alter table item add column more int', 'it has a new column'],
    [
      'given to another owner',
      'alter table item owner to pg_monitor',
      'code of pg_monitor runs with the rights of outboxd_capture',
    ],
    ['the target of a subscription', subscribe('item'), 'rows that the subscription copy writes to item'],
  ])('a table that was %s is told', async (_, change, reason) => {
    const { pool } = await setupTable('id int primary key, amount int', `'{amount}'`)
    onTestFinished(async () => {
      if (change.includes('subscription copy')) await pool.query('drop subscription copy')
    })
    await pool.query(change)
    expect(await trouble(pool)).toMatchObject([{ table_name: 'public.item', reason: expect.stringContaining(reason) }])
  })

  test('a change that cannot be noted by its row is noted although `dismiss` deletes such a note at the same time', async () => {
    const { pool } = await setupTable('id int primary key, amount int', `'{amount}'`)
    await pool.query(`alter table outbox rename to away; insert into item values (1, 1);
      select setval('outboxd_capture.error_id_seq', 200000)`)
    await pool.query('insert into item values (2, 2)')
    await pool.query('insert into item values (3, 3)')
    expect(await trouble(pool)).toMatchObject([{ notes: '3', has_unknown: true }])
    const person = await pool.connect()
    onTestFinished(() => person.release(true))
    await person.query(`begin; select outboxd_capture.dismiss('item')`)
    await pool.query('insert into item values (4, 4)')
    await person.query('commit')
    expect(await trouble(pool)).toMatchObject([{ notes: '1', has_unknown: true }])
  })

  test('after a restore, in which tables have other oids, changes are captured as before', async () => {
    const { pool, captured } = await setupTable('id int primary key, amount int', `'{amount}'`)
    // What pg_restore makes of it: regclass columns follow the names, the function's text does not.
    const { name } = (
      await pool.query(`select tgfoid::regproc::text as name from pg_trigger where tgrelid = 'item'::regclass`)
    ).rows[0]
    await pool.query(`drop table item; create table item (id int primary key, amount int);
      create table restored (like outbox including all); alter table outbox rename to former;
      alter table restored rename to outbox;
      grant insert on outbox to outboxd_capture;
      update outboxd_capture.installed set erp_table = 'item'::regclass, outbox = 'outbox'::regclass;
      create trigger outboxd_capture_insert after insert on item referencing new table as new_rows
        for each statement execute function ${name}()`)
    await pool.query('insert into item values (1, 1)')
    expect(await noted(pool)).toEqual([])
    expect(await captured()).toHaveLength(1)
  })

  test('two tables whose long names begin alike', async () => {
    const { pool, captured } = await setupTable('id int primary key, amount int', `'{amount}'`)
    await pool.query('create schema a_schema_with_a_long_name')
    for (const end of ['a', 'b']) {
      const name = `a_schema_with_a_long_name."${'é'.repeat(30)}${end}"`
      await pool.query(`create table ${name} (id int primary key, amount int)`)
      await asInstaller(pool, `select outboxd_capture.install('${name}', '${end}', '{amount}')`)
      await pool.query(`insert into ${name} values (1, 1)`)
    }
    expect((await captured()).map(({ type }) => type)).toEqual(['a', 'b'])
    await asInstaller(pool, `select outboxd_capture.remove('a_schema_with_a_long_name."${'é'.repeat(30)}a"')`)
    await pool.query(`insert into a_schema_with_a_long_name."${'é'.repeat(30)}b" values (2, 1)`)
    expect(await captured()).toHaveLength(3)
  })

  test.each([
    [`condition => $$n.stauts = 'x'$$`, 'column n.stauts does not exist'],
    [`condition => 'amount'`, 'must be type boolean'],
    [`condition => 'amount = my_function()'`, 'my_function() does not exist'],
    [`condition => 'true) or (true'`, ''],
    [`condition => '1 / amount > 0'`, 'division by zero'],
    [`condition => 'amount >'`, 'syntax error'],
    [`condition => 'n.twice > 1'`, 'column n.twice does not exist'],
    [`key => 'twice'`, 'twice'],
    [`outbox => 'item'`, 'does not exist'],
  ])('install tries at once what it is told: %s', async (argument, message) => {
    const { pool } = await setupTable(
      'id int primary key, amount int, twice int generated always as (amount * 2) virtual',
      `'{amount}', payload => '{id, id}'`,
    )
    await pool.query(`insert into item values (1, 0)`)
    const installing = asInstaller(
      pool,
      `select outboxd_capture.install('item', 'data', '{amount}', payload => '{id, id}', ${argument})`,
    )
    if (message === '') await installing
    else await expect(installing).rejects.toThrow(message)
    await pool.query('insert into item values (2, 2)') // what was installed before goes on
    expect((await pool.query('select from outbox')).rowCount).toBe(2)
  })

  test('all the ways to write: upsert, COPY, MERGE, a changed key, row security, a replica’s session', async () => {
    const { pool, captured } = await setupTable('id int primary key, amount int', `'{amount}'`)
    const ids = async () => (await captured()).map(({ payload }) => Object.values(JSON.parse(payload)).join())
    await pool.query(`insert into item values (1, 1)`)
    await pool.query(`insert into item values (1, 2), (2, 2) on conflict (id) do update set amount = excluded.amount`)
    expect((await ids()).sort()).toEqual(['1,1', '1,2', '2,2'])
    await pool.query(`copy item from program 'printf "3\\t3\\n4\\t4\\n"'`)
    await pool.query(`merge into item using (values (4, 40), (5, 50)) v(id, amount) on v.id = item.id
      when matched then update set amount = v.amount when not matched then insert values (v.id, v.amount)`)
    await pool.query(`update item set id = 100 where id = 1`)
    expect((await ids()).slice(3).sort()).toEqual(['100,2', '3,3', '4,4', '4,40', '5,50'])
    await pool.query(`alter table item enable row level security; alter table item force row level security;
      create policy own on item using (id < 50) with check (true); grant all on item to pg_monitor;
      begin; set local role pg_monitor; insert into item values (60, 60); update item set amount = 9 where id = 2; commit`)
    expect((await ids()).slice(8)).toEqual(['60,60', '2,9'])
    await pool.query(`begin; set local session_replication_role = replica; insert into item values (61, 60); commit`)
    expect(await ids()).toHaveLength(10)
    expect(await noted(pool)).toEqual([])
  })

  test('retry leaves a row that somebody is changing for the next call, and forgets one that is gone', async () => {
    const { pool, captured } = await setupTable('id bigint primary key, amount numeric(12,2)', `'{amount}'`)
    await pool.query(`alter table outbox rename to away;
      insert into item values (9007199254740993, 1.10), (2, 2.20), (3, 3.30); delete from item where id = 3;
      alter table away rename to outbox`)
    const writer = await pool.connect()
    await writer.query('begin; update item set amount = 5 where id = 2')
    expect(await retry(pool)).toMatchObject([{ captured: 1, gone: 1, busy: 1 }])
    await writer.query('commit')
    writer.release()
    expect(await retry(pool)).toMatchObject([{ captured: 1, gone: 0, busy: 0 }])
    expect((await captured()).map(({ payload }) => payload)).toEqual([
      '{"id": 2, "amount": 5.00}',
      '{"id": 9007199254740993, "amount": 1.10}',
      '{"id": 2, "amount": 5.00}',
    ])
  })

  test('who may not read the notes may read that there are some', async () => {
    const { pool } = await setupTable('id int primary key, amount int', `'{amount}'`)
    await pool.query(`alter table outbox rename to away; insert into item values (1, 1)`)
    await pool.query('set role pg_monitor')
    const { rows } = await pool
      .query(`begin; set local role pg_monitor; select * from outboxd_capture.trouble; rollback`)
      .then((results) => (results as unknown as pg.QueryResult[])[2] as pg.QueryResult)
    expect(rows).toMatchObject([{ table_name: 'public.item', notes: '1', reason: expect.stringContaining('42P01') }])
  })
})

describe('a trigger of the ERP that writes its own row again', () => {
  const columns = 'id int primary key, amount int, status text, note text'
  const names = ['a_before', 'z_after'] // as against outboxd_capture_…: triggers fire in the order of their names
  const levels = ['row', 'statement'] as const

  describe.each(names)('named %s', (name) => {
    test.each(
      levels,
    )('an insert that it corrects, for each %s: the corrected row is what is sent last', async (level) => {
      const { pool, sent } = await setupTable(columns, `'{amount}'`)
      await correct(pool, name, level, 'insert', 'amount = amount + 1 where amount % 10 = 0')
      await pool.query(`insert into item values (1, 10), (2, 20), (3, 5)`)
      expect(last(await sent())).toEqual({ 1: 11, 2: 21, 3: 5 })
      // Where the outer statement's turn comes after the correction, the corrected row is sent once.
      if (level === 'row' || name === 'a_before') expect(await sent()).toHaveLength(3)
    })

    test.each(levels)('an update that it corrects twice, one within the other, for each %s', async (level) => {
      const { pool, sent } = await setupTable(columns, `'{amount}'`)
      await pool.query(`insert into item values (1, 1), (2, 2), (3, 3); truncate outbox`)
      await correct(pool, name, level, 'update', 'amount = amount + 1 where amount % 10 in (0, 1)')
      await pool.query(`update item set amount = id * 10; update item set amount = 35 where id = 3`)
      expect(last(await sent())).toEqual({ 1: 12, 2: 22, 3: 35 })
      if (level === 'row' || name === 'a_before') expect(await sent()).toHaveLength(4)
    })

    test('in a partitioned table', async () => {
      const { pool, sent } = await setupTable(
        'id int, region text, amount int, primary key (id, region)) partition by list (region',
        `'{amount}'`,
        {
          before: `create table item_a (amount int, region text not null, id int not null);
          alter table item attach partition item_a for values in ('a')`,
        },
      )
      await correct(pool, name, 'row', 'insert or update', 'amount = amount + 1 where amount % 10 in (0, 1)')
      await pool.query(`insert into item values (1, 'a', 10); insert into item_a values (20, 'a', 2)`)
      expect(last(await sent())).toEqual({ 1: 12, 2: 22 })
      await pool.query(`update item set amount = id * 100`)
      expect(last(await sent())).toEqual({ 1: 102, 2: 202 })
      if (name === 'a_before') expect(await sent()).toHaveLength(4)
      expect(await noted(pool)).toEqual([])
    })
  })

  test('the correction of a column that is not watched: the row is sent once, with it', async () => {
    const { pool, captured } = await setupTable(columns, `'{amount}'`)
    await correct(pool, 'a', 'row', 'insert or update', `note = 'priced' where note is null`)
    await pool.query(`insert into item values (1, 1)`)
    await pool.query(`update item set amount = 2, note = null`)
    expect((await captured()).map(({ payload }) => JSON.parse(payload))).toEqual([
      { id: 1, amount: 1, status: null, note: 'priced' },
      { id: 1, amount: 2, status: null, note: 'priced' },
    ])
  })

  test('the condition is asked of the row that is sent: what is blocked at once is not, what is released is', async () => {
    const { pool, sent } = await setupTable(columns, `'{amount}', condition => $$status = 'released'$$`)
    await correct(
      pool,
      'a',
      'row',
      'insert or update',
      `status = case when amount > 9 then 'blocked' else 'released' end
      where status = case when amount > 9 then 'released' else 'draft' end`,
    )
    await pool.query(
      `insert into item values (1, 10, 'released'), (2, 2, 'draft'), (3, 3, 'released'), (4, 10, 'draft')`,
    )
    expect(await sent()).toEqual([
      [2, 2],
      [3, 3],
    ])
    await pool.query(`update item set amount = 4, status = 'draft' where id in (1, 3)`)
    await pool.query(`update item set amount = 11 where id in (2, 4)`)
    expect(await sent()).toEqual([
      [2, 2],
      [3, 3],
      [1, 4],
      [3, 4],
    ])
  })

  test('a row that it deletes, or gives another key, or hides, is sent as the statement left it', async () => {
    const { pool, sent } = await setupTable(columns, `'{amount}'`)
    await correct(pool, 'a', 'row', 'insert', `id = id + 100 where amount = 1`)
    await pool.query(`create function discard() returns trigger language plpgsql as
      $$begin update item set note = 'x' where id = new.id; delete from item where id = new.id and amount = 2; return null; end$$;
      create trigger b after insert on item for each row execute function discard()`)
    await pool.query(`insert into item values (1, 1), (2, 2)`)
    expect(Object.keys(last(await sent()))).toEqual(['1', '2', '101'])
    // The function's owner is one whom a policy binds.
    await pool.query(`truncate outbox; grant create on schema public, outboxd_capture to pg_monitor;
      grant all on all tables in schema public, outboxd_capture to pg_monitor;
      grant execute on all functions in schema outboxd_capture to pg_monitor;
      do $$begin execute format('alter function %s owner to pg_monitor',
        (select tgfoid::regproc from pg_trigger where tgname = 'outboxd_capture_insert')); end$$;
      alter table item enable row level security; create policy shown on item using (amount < 5)`)
    await pool.query(`insert into item values (5, 5), (4, 4)`)
    expect(last(await sent())).toEqual({ 4: 4, 5: 5 })
    expect(await noted(pool)).toEqual([])
  })

  test('a capture within that fails is noted, and the outer one does not send what was there before', async () => {
    const { pool, sent } = await setupTable(columns, `'{amount}'`)
    await correct(pool, 'a', 'row', 'insert', 'amount = amount + 1')
    await pool.query(`alter table outbox add constraint no check (payload ->> 'amount' <> '2')`)
    await pool.query(`insert into item values (1, 1)`)
    expect(await sent()).toEqual([])
    expect(await noted(pool)).toMatchObject([{ operation: 'UPDATE', key: { id: 1 }, sqlstate: '23514' }])
    await pool.query(`alter table outbox drop constraint no`)
    await retry(pool)
    expect(await sent()).toEqual([[1, 2]])
  })

  test('in a session that wrote single rows before, 5,000 rows are read again by the index', async () => {
    const { pool, sent } = await setupTable(columns, `'{amount}'`)
    await correct(pool, 'a', 'statement', 'insert', 'amount = -amount where amount > 0')
    const session = await pool.connect()
    onTestFinished(() => session.release())
    await session.query(`insert into item values (0, 1)`)
    const plans = await explained(session, () =>
      session.query(`begin; insert into item select n, n from generate_series(1, 5000) n`),
    )
    expect((await session.query('show enable_seqscan')).rows).toEqual([{ enable_seqscan: 'on' }]) // the ERP's own plans
    await session.query('commit')
    expect((await sent()).length).toBe(5_001)
    const again = plans.filter((plan) => plan.includes('distinct on'))
    expect(again).toHaveLength(1)
    expect(again[0]).toContain('Index Scan using item_pkey on item')
  })

  test('a table that was renamed is told: its rows are not looked for in another of its name', async () => {
    const { pool, sent } = await setupTable(columns, `'{amount}'`)
    await correct(pool, 'a', 'row', 'insert', 'amount = amount + 1 where amount = 1')
    await pool.query(`alter table item rename to goods; create table item (like goods including all);
      create or replace function a() returns trigger language plpgsql as
        $$begin update goods set amount = amount + 1 where amount = 1; return null; end$$`)
    await pool.query(`insert into goods values (1, 1)`)
    expect(await noted(pool)).toMatchObject([
      { table: 'goods', operation: 'INSERT', key: { id: 1 }, sqlstate: '42P01' },
    ])
    expect(await trouble(pool)).toMatchObject([
      { notes: '1', reason: expect.stringContaining('public.item was renamed: install it again') },
      { notes: '0', reason: expect.stringContaining('it is goods now') },
    ])
    await retry(pool)
    expect(last(await sent())).toEqual({ 1: 2 })
  })

  test('two foreign keys that cascade into one row: it is sent once, as both left it', async () => {
    const { pool, captured } = await setupTable(
      'id int primary key, bill text references party on update cascade, ship text references party on update cascade',
      `'{bill, ship}'`,
      { first: `create table party (no text primary key); insert into party values ('C1'), ('C2')` },
    )
    await pool.query(`insert into item select n, 'C1', 'C1' from generate_series(1, 50) n; truncate outbox`)
    await pool.query(`update party set no = 'C9' where no = 'C1'`)
    const payloads = (await captured()).map(({ payload }) => JSON.parse(payload))
    expect(payloads).toEqual(payloads.map((_, index) => ({ id: index + 1, bill: 'C9', ship: 'C9' })))
    expect(payloads).toHaveLength(50)
  })

  test('tables that an earlier version was installed on are told', async () => {
    const { pool } = await setupTable(columns, `'{amount}'`)
    await pool.query(
      `drop view outboxd_capture.trouble; alter table outboxd_capture.installed drop column version, drop column columns,
      drop column outbox_name`,
    )
    await installCapture(pool)
    expect(await trouble(pool)).toMatchObject([
      { table_name: 'public.item', reason: expect.stringContaining('earlier version') },
    ])
    await asInstaller(pool, `select outboxd_capture.install('item', 'data', '{amount}')`)
    expect(await trouble(pool)).toEqual([])
  })

  /** Gives `item` a trigger that updates, of the rows just written (a statement's: of all rows), those that `change` names. */
  async function correct(pool: pg.Pool, name: string, level: (typeof levels)[number], on: string, change: string) {
    const only = level === 'row' ? ' and id = new.id' : ''
    const [set, where = 'true'] = change.split(' where ')
    await pool.query(`create function ${name}() returns trigger language plpgsql as
        $$begin if exists (select from item where ${where}${only}) then update item set ${set} where ${where}${only}; end if; return null; end$$;
      create trigger ${name} after ${on} on item for each ${level} execute function ${name}()`)
  }

  const last = (rows: number[][]) => Object.fromEntries(rows)
})

/** Makes a table the target of a subscription named `copy`, as CREATE SUBSCRIPTION would if there were a publisher. */
function subscribe(table: string): string {
  return `create subscription copy connection 'dbname=none' publication none with (connect = false, slot_name = none);
    set allow_system_table_mods = on;
    insert into pg_subscription_rel (srsubid, srrelid, srsubstate) select oid, '${table}'::regclass, 'r' from pg_subscription;
    reset allow_system_table_mods`
}

/** The plans of all statements that `act` runs in the session, those of its triggers too, in the order of their ends. */
async function explained(session: pg.PoolClient, act: () => Promise<unknown>): Promise<string[]> {
  const plans: string[] = []
  session.on('notice', ({ message }) => plans.push(message ?? ''))
  await session.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0;
    set auto_explain.log_nested_statements = on; set auto_explain.log_level = notice`)
  await act()
  return plans
}

async function noted(pool: pg.Pool) {
  const { rows } = await pool.query(
    'select erp_table::text as table, operation, row_key as key, sqlstate from outboxd_capture.error order by id',
  )
  return rows
}

async function trouble(pool: pg.Pool) {
  return (await pool.query('select * from outboxd_capture.trouble order by 1, 2 desc')).rows
}

async function retry(pool: pg.Pool) {
  return (await asInstaller(pool, 'select * from outboxd_capture.retry()')).rows
}

/** A table `item` of the given columns. @param args watched, and more arguments of install */
async function setupTable(
  columns: string,
  args: string,
  {
    first = '',
    before = '',
    installOn = 'item',
    payload = '',
  }: { first?: string; before?: string; installOn?: string; payload?: string } = {},
) {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await pool.query(`${first}; create table item (${columns}); ${before}`)
  await installCapture(pool)
  await asInstaller(
    pool,
    `select outboxd_capture.install('${installOn}', 'data', ${args}${payload && `, payload => '${payload}'`})`,
  )
  const captured = () => readCaptured(pool)
  /** Of each captured row its id and its amount, in the order of the outbox. */
  const sent = async () =>
    (await captured()).map(({ payload }) => JSON.parse(payload)).map(({ id, amount }): number[] => [id, amount])
  return { pool, captured, sent }
}

async function setup(more = '') {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await pool.query(`create schema "Sales"; create table "Sales"."Order" (
    id bigint primary key, customer_no text, "Amount" numeric(12,2), reference text, note text, ordered_at timestamptz)`)
  await installCapture(pool)
  await asInstaller(
    pool,
    `select outboxd_capture.install('"Sales"."Order"', type => 'data', key => 'customer_no',
    watched => '{customer_no, Amount, reference}',
    payload => '{customerId, customer_no, amount, Amount, orderedAt, ordered_at}'${more})`,
  )
  return {
    pool,
    captured: () => readCaptured(pool),
  }
}

async function readCaptured(pool: pg.Pool) {
  const { rows } = await pool.query<{ type: string; key: string; payload: string }>(
    'select type, key, payload::text from outbox order by id',
  )
  return rows
}

async function insertOrders(pool: pg.Pool, count: number): Promise<void> {
  await pool.query(`insert into "Sales"."Order" select n, 'C1', n, 'a', '', now() from generate_series(1, ${count}) n`)
}
