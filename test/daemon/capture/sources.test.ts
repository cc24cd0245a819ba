import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { readProblems } from '../../../src/ledger/problems.ts'
import type { Mapping } from '../../../src/mapping/mapping.ts'
import { Outbox } from '../../../src/outbox/outbox.ts'
import { mappingFrom } from '../../mapping/mappingOf.ts'
import { tableOf } from '../../outbox/setup.ts'
import { openLedgerForFile } from '../../support/ledger.ts'
import { openCapture } from './setupCapture.ts'

/** Capture of records whose content a query gives (`source:` in the mapping file). */

const ledger = openLedgerForFile()
beforeAll(async () => {
  await ledger.pool.query(`create table sale (id int primary key, total numeric, state text not null default 'new')`)
})
beforeEach(() => ledger.pool.query('truncate sale'))

const saleTable =
  'table: sale\nid: id\ntype: { constant: order }\nstate: { status: state, new: new, queued: queued, rejected: rejected }'

function mappingsOf(sql: string): ReadonlyMap<string, Mapping> {
  const fields =
    'fields: { total: { from: total, type: "decimal(12,2)", required: true } }\nbody: { total: "${total}" }'
  return new Map([['order', mappingFrom(`type: order\nendpoint: orders\nsource: ${JSON.stringify(sql)}\n${fields}`)]])
}

/** Captures until nothing is left to do at once. */
async function captureAll(sql: string, sourceMaxMs = 5_000) {
  const outbox = new Outbox(ledger.pool, tableOf(saleTable), 1_000_000, ledger.pool)
  const capture = await openCapture(ledger.pool, { outbox, mappings: mappingsOf(sql), sourceMaxMs })
  await capture.captureAll()
  return capture
}

const submissions = async () =>
  (
    await ledger.pool.query(
      `select outbox_id as row, type, state, payload, body, error from outboxd.submission order by outbox_id::int`,
    )
  ).rows

const insert = (from: number, to: number) =>
  ledger.pool.query(`insert into sale select n, n + 0.10 from generate_series($1::int, $2) n`, [from, to])

test('the result of the query is mapped, and stored in the ledger as it was read', async () => {
  await insert(1, 2)
  await captureAll('select s.id, s.total from sale s where s.id = any($1)')
  expect(await submissions()).toEqual([
    { row: '1', type: 'order', state: 'queued', payload: '{"id":1,"total":1.10}', body: '{"total":1.10}', error: null },
    { row: '2', type: 'order', state: 'queued', payload: '{"id":2,"total":2.10}', body: '{"total":2.10}', error: null },
  ])
  expect((await ledger.pool.query('select distinct state from sale')).rows).toEqual([{ state: 'queued' }])
})

test('of 300 records only the one for which the query fails is rejected, with its name', async () => {
  await insert(1, 300)
  const { failedBatches } = await captureAll(
    'select s.id, s.total, 1 / (s.id - 217) as part from sale s where s.id = any($1)',
  )
  expect(failedBatches).toEqual([])
  const all = await submissions()
  expect(all.filter(({ state }) => state === 'queued')).toHaveLength(299)
  expect(all.filter(({ state }) => state !== 'queued')).toEqual([
    {
      ...{ row: '217', type: 'order', state: 'rejected', payload: null, body: null },
      error: 'test.yaml: the query of "source" failed for the record 217: division by zero',
    },
  ])
  const { rows } = await ledger.pool.query('select state, count(*)::int as n from sale group by 1 order by 1')
  expect(rows).toEqual([
    { state: 'queued', n: 299 },
    { state: 'rejected', n: 1 },
  ])
})

test('a record whose query takes too long is skipped and tried again, and the others are captured', async () => {
  await insert(1, 3)
  const slow = 'select s.id, s.total, case when s.id = 2 then pg_sleep(60) end from sale s where s.id = any($1)'
  const { skipped } = await captureAll(slow, 500)
  expect(skipped).toEqual(['2'])
  expect((await submissions()).map(({ row, state }) => [row, state])).toEqual([
    ['1', 'queued'],
    ['3', 'queued'],
  ])
  const [problem] = await readProblems(ledger.pool, 10)
  expect(problem).toMatchObject({ kind: 'row_skipped', subject: '2' })
  expect(problem?.detail).toContain('57014')
  await ledger.pool.query("update outboxd.problem set retry_at = now() where kind = 'row_skipped'")
  await captureAll('select s.id, s.total from sale s where s.id = any($1)')
  expect(await readProblems(ledger.pool, 10)).toEqual([])
  expect(await submissions()).toHaveLength(3)
})

test('a function that goes on after the server cancelled it holds up only its record, and no session is left', async () => {
  await insert(1, 3)
  await ledger.pool.query(`create or replace function stubborn(n int) returns int language plpgsql as $$
    begin
      if n = 2 then
        begin perform pg_sleep(60); exception when query_canceled then perform pg_sleep(60); end;
      end if;
      return n;
    end $$`)
  const { skipped } = await captureAll('select s.id, s.total, stubborn(s.id) from sale s where s.id = any($1)', 500)
  expect(skipped).toEqual(['2'])
  expect((await submissions()).map(({ row }) => row)).toEqual(['1', '3'])
  const { rows } = await ledger.pool.query(
    `select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
  )
  expect(rows).toEqual([])
})

test('a query that is too slow for many records is run for fewer, but not for single ones', async () => {
  await insert(1, 40)
  const slow = 'select s.id, s.total, pg_sleep(0.05)::text as slept from sale s where s.id = any($1)'
  const { failedBatches, skipped, batches: sizes } = await captureAll(slow, 800)
  expect(await submissions()).toHaveLength(40)
  expect(skipped).toEqual([])
  expect(failedBatches).not.toEqual([])
  // Otherwise each failure would be followed by batches down to one record.
  expect(Math.min(...sizes.slice(0, -1))).toBeGreaterThan(2)
})

test('a lock on a table of the query makes its rows skipped', async () => {
  await ledger.pool.query('create table party (id int primary key); insert into party values (1)')
  await insert(1, 1)
  const client = await ledger.pool.connect()
  onTestFinished(async () => {
    await client.query('rollback')
    client.release()
    await ledger.pool.query('drop table party')
  })
  await client.query('begin; lock table party')
  const { skipped } = await captureAll(
    'select s.id, s.total from sale s join party p on true where s.id = any($1)',
    500,
  )
  expect(skipped).toEqual(['1'])
  expect(await submissions()).toEqual([])
})

describe('an error is blamed by what other records show, not by its SQLSTATE', () => {
  const heldTypes = async () =>
    (await readProblems(ledger.pool, 10)).map(({ kind, subject, detail }) => [kind, subject, detail])
  const fails = (code: string, when: string) => `
    create or replace function checked(id int) returns int language plpgsql as $$begin
      if ${when} then raise exception 'no' using errcode = '${code}'; end if; return id; end$$`
  const source = 'select s.id, s.total, checked(s.id) as checked from sale s where s.id = any($1)'

  // Codes that seem to concern all records (rights, tables, a standby, a shutdown, resources …), and codes of data.
  const codes = [
    '42501',
    '42P01',
    '42703',
    '42601',
    '25006',
    '57P01',
    '08006',
    '53100',
    '53300',
    '55000',
    '3F000',
    '28000',
    '22012',
    'P0001',
    'XX000',
  ]

  test.each(codes)('%s for one record: that record is rejected, and the others are captured', async (code) => {
    await insert(1, 5)
    await ledger.pool.query(fails(code, 'id = 3'))
    await captureAll(source)
    expect((await submissions()).map(({ row, state }) => [row, state])).toEqual([
      ['1', 'queued'],
      ['2', 'queued'],
      ['3', 'rejected'],
      ['4', 'queued'],
      ['5', 'queued'],
    ])
    expect((await submissions())[2]?.error).toBe('test.yaml: the query of "source" failed for the record 3: no')
    expect(await heldTypes()).toEqual([])
  })

  test.each(codes)('%s for all of many records: their type is held until the query works', async (code) => {
    await insert(1, 30)
    await ledger.pool.query(fails(code, 'true'))
    await captureAll(source)
    expect(await submissions()).toEqual([])
    expect(await heldTypes()).toEqual([
      [
        'source_failing',
        'order',
        expect.stringMatching(`^test.yaml: the query of "source" fails for all rows \\(${code}`),
      ],
    ])
    await ledger.pool.query(fails(code, 'id = 30'))
    await captureAll(source)
    expect(await submissions()).toEqual([])
    await ledger.pool.query('update outboxd.problem set retry_at = now()')
    await captureAll(source)
    expect((await submissions()).filter(({ state }) => state === 'queued')).toHaveLength(29)
    expect(await heldTypes()).toEqual([])
  })

  test.each([
    ['42501', 'source_failing'],
    ['22012', 'rejected'],
  ])('%s for the only record: %s', async (code, end) => {
    await insert(1, 1)
    await ledger.pool.query(fails(code, 'true'))
    await captureAll(source)
    const ends = [...(await submissions()).map(({ state }) => state), ...(await heldTypes()).map(([kind]) => kind)]
    expect(ends).toEqual([end])
  })

  test.each([
    '57014',
    '55P03',
    '40001',
    '40P01',
    '53200',
  ])('%s, which may pass: the record is skipped, and the others are captured', async (code) => {
    await insert(1, 5)
    await ledger.pool.query(fails(code, 'id = 3'))
    const { skipped } = await captureAll(source)
    expect(skipped).toEqual(['3'])
    expect((await submissions()).map(({ row }) => row)).toEqual(['1', '2', '4', '5'])
  })

  test.each([
    ['select id from nothing where id = any($1)', /42P01: relation "nothing" does not exist/],
    [
      'with w as (delete from sale returning *) select * from w where id = any($1)',
      /0A000: .*must be at the top level/,
    ],
    ["select s.id, 'x'::int as total from sale s where s.id = any($1)", /22P02\)$/],
  ])('a wrong query holds up only its type: %s', async (wrong, detail) => {
    await insert(1, 3)
    await captureAll(wrong)
    expect(await submissions()).toEqual([])
    expect(await heldTypes()).toEqual([['source_failing', 'order', expect.stringMatching(detail)]])
  })

  test('a connection that ends stops capture of all types', async () => {
    await insert(1, 3)
    const own = 'select s.id, s.total, pg_terminate_backend(pg_backend_pid()) as ended from sale s where s.id = any($1)'
    await expect(captureAll(own)).rejects.toThrow()
    expect(await heldTypes()).toEqual([])
  })
})

test('contents beyond the memory limit are read in the next batches', async () => {
  await insert(1, 5)
  const large = `select s.id, s.total, repeat('x', 900000 + s.id) as note from sale s where s.id = any($1)`
  await ledger.pool.query('insert into sale select n, 1 from generate_series(6, 40) n')
  const { batches } = await captureAll(large)
  expect(batches).toEqual([17, 17, 6])
  expect(await submissions()).toHaveLength(40)
})

test('the query reads the row as it is at capture', async () => {
  await insert(1, 1)
  await ledger.pool.query('update sale set total = 99')
  await captureAll('select s.id, s.total from sale s where s.id = any($1)')
  expect(await submissions()).toMatchObject([{ body: '{"total":99.00}' }])
})
