import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { deleteOldRequests } from '../../src/sandbox/control/controlQueries.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { type Setup, setup } from './setup.ts'

const hourUs = 3_600_000_000
const nowUs = 1_800_000_000_000_000

let database: TestDatabase
beforeAll(async () => {
  database = await createDatabase('sandbox_template')
})
beforeEach(async () => {
  await database.pool.query('truncate sandbox.ledger, sandbox.transactions restart identity')
})
afterAll(() => database[Symbol.asyncDispose]())

/** Inserts requests that arrived `ageUs` before now, one microsecond apart. */
async function arrived(count: number, ageUs: number, more: { counted?: boolean; key?: string } = {}): Promise<void> {
  const { counted = false, key = null } = more
  await database.pool.query(
    `
    insert into sandbox.ledger (arrived_at, endpoint, method, path, client, address, body, status, dropped, counted,
      idempotency_key, transaction_id)
    select timestamptz 'epoch' + ($1::bigint + n) * interval '1 microsecond', 'submit', 'POST', '/api/v1/data', 'sandbox', '', '',
      200, false, $3, $4::text, case when $4 is not null then 'transaction ' || n end
    from generate_series(1, $2::integer) n
    `,
    [nowUs - ageUs, count, counted, key],
  )
}

const trimAll = (rows: number) => deleteOldRequests(database.pool, rows, nowUs - 60_000_000)

async function sequences(): Promise<number[]> {
  const { rows } = await database.pool.query('select sequence::integer from sandbox.ledger order by 1')
  return rows.map(({ sequence }) => sequence)
}

test('the newest rows are kept, up to the limit', async () => {
  await arrived(20, hourUs)
  await trimAll(5)
  expect(await sequences()).toEqual([16, 17, 18, 19, 20])
  await trimAll(5)
  expect(await sequences()).toHaveLength(5)
})

test('rows with an idempotency key are kept, and rows that count against the limit until they leave the window', async () => {
  await arrived(2, 10 * hourUs, { key: 'k' })
  await arrived(2, 10 * hourUs)
  await arrived(2, 30_000_000, { counted: true })
  await arrived(4, 20_000_000)
  await trimAll(1)
  expect(await sequences()).toEqual([1, 2, 5, 6, 10])
  await deleteOldRequests(database.pool, 1, nowUs)
  expect(await sequences()).toEqual([1, 2, 10])
})

test('a sandbox trims its ledger to the set number of rows', async () => {
  await using s: Setup = await setup({ ledgerRows: 1000 })
  await s.database.pool.query(`
    insert into sandbox.ledger (arrived_at, endpoint, method, path, address, status, dropped, counted)
    select now(), 'other', 'GET', '/', '', 404, false, false from generate_series(1, 1500)
  `)
  await s.restart()
  await expect.poll(async () => (await s.control('GET', '/ledger?limit=2000')).rows.length).toBe(1000)
})
