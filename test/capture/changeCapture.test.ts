import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { createDatabase } from '../support/database.ts'

const file = (name: string) => readFileSync(`deploy/change-capture/${name}.sql`, 'utf8')

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
  await pool.query(`select outboxd_capture.install('"Sales"."Order"', type => 'order', watched => '{note}')`)
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
  const refusal = (args: string) => expect(pool.query(`select outboxd_capture.install(${args})`)).rejects
  await refusal(`'"Sales"."Order"', 'data', '{Amuont, note}'`).toThrow('"Sales"."Order" has no column Amuont')
  await refusal(`'"Sales"."Order"', 'data', '{}'`).toThrow('watched is empty')
  await refusal(`'"Sales"."Order"', 'data', '{note}', payload => '{a}'`).toThrow('payload must be pairs')
  await pool.query('create table heap (a int)')
  await refusal(`'heap', 'data', '{a}'`).toThrow('heap has no primary key')
})

test('removed, nothing is captured any more, and nothing is left', async () => {
  const { pool, captured } = await setup()
  await pool.query(file('remove'))
  await insertOrders(pool, 1)
  expect(await captured()).toEqual([])
  const { rows } = await pool.query(`select from pg_trigger where tgname like 'outboxd_capture%'
    union all select from pg_namespace where nspname = 'outboxd_capture'`)
  expect(rows).toEqual([])
})

async function setup(more = '') {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await pool.query(`create schema "Sales"; create table "Sales"."Order" (
    id bigint primary key, customer_no text, "Amount" numeric(12,2), reference text, note text, ordered_at timestamptz)`)
  await pool.query(file('install'))
  await pool.query(`select outboxd_capture.install('"Sales"."Order"', type => 'data', key => 'customer_no',
    watched => '{customer_no, Amount, reference}',
    payload => '{customerId, customer_no, amount, Amount, orderedAt, ordered_at}'${more})`)
  return {
    pool,
    async captured() {
      const { rows } = await pool.query<{ type: string; key: string; payload: string }>(
        'select type, key, payload::text from outbox order by id',
      )
      return rows
    },
  }
}

async function insertOrders(pool: pg.Pool, count: number): Promise<void> {
  await pool.query(`insert into "Sales"."Order" select n, 'C1', n, 'a', '', now() from generate_series(1, ${count}) n`)
}
