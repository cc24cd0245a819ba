import type pg from 'pg'
import { expect, test } from 'vitest'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { mayHaveWaitingRows, readRecordWithoutQueriedContent, readWaitingRows } from '../../src/outbox/readRows.ts'
import { anyRows, openClaim, openClaimOfRow, setup } from './setup.ts'
import { marked } from './tableForms.ts'

test('rows are claimed in the order of their ids, each once', async () => {
  const { pool, capture, outbox } = await setup()
  await pool.query(`insert into outbox (type, payload) select 'data', '{}' from generate_series(1, 5)`)
  expect(await capture(3)).toEqual(['1', '2', '3'])
  expect(await capture(3)).toEqual(['4', '5'])
  expect(await capture(3)).toEqual([])
  expect(await mayHaveWaitingRows(outbox)).toBe(false)
})

test('rows of a key wait while another session locks an earlier row of it, and rows of other keys go on', async () => {
  const { pool, capture, connect } = await setup()
  await pool.query(`insert into outbox (type, key, payload) values
    ('data', 'a', '{}'), ('data', 'b', '{}'), ('data', 'a', '{}'), ('data', null, '{}'), ('data', 'b', '{}')`)
  const erp = await connect()
  await erp.query('begin')
  await erp.query('update outbox set payload = payload where id = 1')
  expect(await capture()).toEqual(['2', '4', '5'])
  await erp.query('commit')
  expect(await capture()).toEqual(['1', '3'])
})

test('with `order`, rows wait behind a locked row of their key that comes before them; NULL comes last', async () => {
  const { pool, capture, connect } = await setup({
    ddl: `${marked.ddl}; alter table source add rank int`,
    yaml: `${marked.yaml}\norder: rank`,
  })
  await pool.query(`insert into source (key, rank) values ('a', 3), ('a', 1), ('a', null), ('b', null), ('b', 2)`)
  const erp = await connect()
  await erp.query('begin; select from source where id = 2 for update')
  expect(await capture(2)).toEqual(['5'])
  expect(await capture()).toEqual(['4'])
  await erp.query('rollback')
  expect(await capture()).toEqual(['2', '1', '3'])
})

test('rows that wait behind a locked row do not count towards the limit of a claim', async () => {
  const { pool, capture, connect } = await setup()
  await pool.query(`insert into outbox (type, key, payload) select 'data', 'a', '{}' from generate_series(1, 10)`)
  await pool.query(`insert into outbox (type, key, payload) values ('data', 'b', '{}')`)
  const erp = await connect()
  await erp.query('begin')
  await erp.query('select from outbox where id = 1 for update')
  expect(await capture(5)).toEqual(['11'])
})

test('a claim of one row passes several waiting keys', async () => {
  const { pool, capture, connect } = await setup()
  for (const _ of [1, 2])
    await pool.query(
      `insert into outbox (type, key, payload) select 'data', 'k' || n, '{}' from generate_series(1, 5) n`,
    )
  await pool.query(`insert into outbox (type, payload) values ('data', '{}')`)
  const erp = await connect()
  await erp.query('begin')
  await erp.query('select from outbox where id <= 5 for update')
  expect(await capture(1)).toEqual(['11'])
})

/** Inserts rows behind rows of the held type `order`, then rows without a key. */
async function insertRowsBehindHeldOnes(pool: pg.Pool, keys: number, withoutKey: number) {
  for (const type of ['order', 'data'])
    await pool.query(
      `insert into outbox (type, key, payload) select $1, 'k' || n, '{}' from generate_series(1, ${keys}) n`,
      [type],
    )
  await pool.query(`insert into outbox (type, payload) select 'data', '{}' from generate_series(1, ${withoutKey})`)
}

test('a claim passes thousands of rows that have to wait, and takes no more rows than its limit', async () => {
  const { pool, outbox } = await setup()
  await insertRowsBehindHeldOnes(pool, 4_000, 3)
  await using claimed = await openClaim(outbox, { ...anyRows, limit: 2, heldTypes: ['order'] })
  expect(claimed.outboxIds).toEqual(['8001', '8002'])
})

test('claiming a locked row by its id fails with a lock error, not as if the row were gone', async () => {
  const { pool, outbox, connect } = await setup()
  await pool.query(`insert into outbox (type, payload) values ('data', '{}')`)
  const erp = await connect()
  await erp.query('begin')
  await erp.query('select from outbox where id = 1 for update')
  await expect(openClaimOfRow(outbox, '1')).rejects.toMatchObject({ code: '55P03' })
})

test('a claim that ends without marking its rows leaves them unchanged', async () => {
  const { pool, outbox, capture } = await setup()
  await pool.query(`insert into outbox (type, payload) values ('data', '{}')`)
  {
    await using claimed = await openClaim(outbox, anyRows)
    expect(claimed.outboxIds).toHaveLength(1)
    expect(await capture()).toEqual([])
  }
  expect(await capture()).toEqual(['1'])
})

test('a claim does not block inserts of rows that refer to the claimed rows', async () => {
  const { pool, outbox } = await setup({ ddl: 'create table line (outbox_id bigint references outbox)' })
  await pool.query(`insert into outbox (type, payload) values ('data', '{}')`)
  await using claimed = await openClaim(outbox, anyRows)
  expect(claimed.outboxIds).toHaveLength(1)
  await pool.query(`set statement_timeout = 5000; insert into line values (1)`)
})

test('a row is read by its id, and waiting rows are listed, without a claim', async () => {
  const { pool, outbox } = await setup()
  await pool.query(`insert into outbox (type, key, payload, created_at)
    values ('data', 'k', '{"amount": 1234.50}', '2026-11-20 10:00:00.123456+01'), ('data', null, '{}', 'infinity')`)
  expect(await readRecordWithoutQueriedContent(outbox, '1')).toEqual({
    outboxId: '1',
    type: 'data',
    key: 'k',
    payload: '{"amount": 1234.50}',
    created: expect.stringMatching(/^\w{8} 2026-11-20T09:00:00.123456Z$/),
    unreadable: null,
    createdAt: '2026-11-20T09:00:00.123456Z',
  })
  for (const none of ['3', 'x', '', '99999999999999999999', '1.0'])
    expect(await readRecordWithoutQueriedContent(outbox, none)).toBeNull()
  expect((await readWaitingRows(outbox, 5)).map(({ outboxId, createdAt }) => [outboxId, createdAt])).toEqual([
    ['1', '2026-11-20T09:00:00.123456Z'],
    ['2', null],
  ])
  expect(await readBacklog(outbox)).toEqual({ waiting: 2, oldestMs: Date.parse('2026-11-20T09:00:00.123Z') })
})

test('a payload over the limit is captured unread, with the reason', async () => {
  const { pool, captureRecords } = await setup()
  await pool.query(`insert into outbox (type, payload) values ('data', to_jsonb(repeat('x', 2000))), ('data', '{}')`)
  expect((await captureRecords()).map(({ payload, unreadable }) => [payload, unreadable])).toEqual([
    [null, 'the payload has 2002 bytes, more than the 1000 that PAYLOAD_MAX_BYTES allows'],
    ['{}', null],
  ])
})

test('a missing table is named, and used once it exists', async () => {
  const { pool, outbox } = await setup({ ddl: 'alter table outbox rename to later' })
  await expect(mayHaveWaitingRows(outbox)).rejects.toThrow('there is no table "outbox" in the outbox\'s database')
  await pool.query('alter table later rename to outbox')
  expect(await mayHaveWaitingRows(outbox)).toBe(false)
})
