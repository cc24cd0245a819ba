import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { type CaptureDeps, createCapture } from '../../../src/daemon/capture/capture.ts'
import { captureFault } from '../../../src/daemon/createCapturePart.ts'
import { readProblems } from '../../../src/ledger/problems.ts'
import type { Mapping } from '../../../src/mapping/mapping.ts'
import { mapOutboxRecord } from '../../../src/mapping/mapRecord.ts'
import { claimRow, claimRows } from '../../../src/outbox/claimRows.ts'
import { Outbox } from '../../../src/outbox/outbox.ts'
import { readContents } from '../../../src/outbox/readContents.ts'
import { hasNew } from '../../../src/outbox/readRows.ts'
import { mappingFrom } from '../../mapping/mappingOf.ts'
import { tableOf } from '../../outbox/setup.ts'
import { type Ledger, openCaptureLock, openLedger } from '../../support/ledger.ts'

/** Capture of records whose content a query gives (`source:` in the mapping file). */

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
  await ledger.pool.query(`create table sale (id int primary key, total numeric, state text not null default 'new')`)
})
beforeEach(async () => {
  await ledger.reset()
  await ledger.pool.query('truncate sale')
})
afterAll(() => ledger[Symbol.asyncDispose]())

const saleTable =
  'table: sale\nid: id\ntype: { constant: order }\nstate: { status: state, new: new, queued: queued, rejected: rejected }'

function mappingsOf(sql: string): ReadonlyMap<string, Mapping> {
  const fields =
    'fields: { total: { from: total, type: "decimal(12,2)", required: true } }\nbody: { total: "${total}" }'
  return new Map([['order', mappingFrom(`type: order\nendpoint: orders\nsource: ${JSON.stringify(sql)}\n${fields}`)]])
}

/** Captures until nothing is left to do at once. @returns the rows that were put off, and how many batches failed */
async function captureAll(sql: string, changes: Partial<CaptureDeps> = {}, maxMs = 5_000) {
  const outbox = new Outbox(ledger.pool, tableOf(saleTable), 1_000_000, ledger.pool)
  const lock = openCaptureLock(ledger.pool)
  const mappings = mappingsOf(sql)
  const skipped: string[] = []
  let failed = 0
  const capture = createCapture({
    windowMax: 1_000,
    elapsedMs: () => performance.now(),
    knownTypes: () => ['order'],
    claim: (request) => claimRows(outbox, request),
    claimOne: (outboxId) => claimRow(outbox, outboxId),
    readContents: (records) => readContents(outbox, mappings, records, maxMs),
    withLock: lock.withLock,
    readAgenda: async () => ({ ...(await lock.readAgenda()), hasNew: () => hasNew(outbox) }),
    skip: lock.skip,
    forget: lock.forget,
    async reportLater() {},
    map: (record, id) => mapOutboxRecord(mappings, record, id),
    newId: randomUUID,
    newKey: randomUUID,
    faultOf: captureFault,
    onCaptured() {},
    onBatchFailed() {
      failed += 1
    },
    onRowRejected() {},
    onRowSkipped: (outboxId) => skipped.push(outboxId),
    ...changes,
  })
  while ((await capture.runOnce()) !== 'idle');
  return { skipped, failed }
}

const submissions = async () =>
  (
    await ledger.pool.query(
      `select outbox_id as row, type, state, payload, body, error from outboxd.submission order by outbox_id::int`,
    )
  ).rows

const insert = (from: number, to: number) =>
  ledger.pool.query(`insert into sale select n, n + 0.10 from generate_series($1::int, $2) n`, [from, to])

test('the result of the query is mapped, and kept in the ledger as it was read', async () => {
  await insert(1, 2)
  await captureAll('select s.id, s.total from sale s where s.id = any($1)')
  expect(await submissions()).toEqual([
    { row: '1', type: 'order', state: 'queued', payload: '{"id":1,"total":1.10}', body: '{"total":1.10}', error: null },
    { row: '2', type: 'order', state: 'queued', payload: '{"id":2,"total":2.10}', body: '{"total":2.10}', error: null },
  ])
  expect((await ledger.pool.query('select distinct state from sale')).rows).toEqual([{ state: 'queued' }])
})

test('of 300 records the one that the query fails for is rejected by name, and the others are sent', async () => {
  await insert(1, 300)
  const { failed } = await captureAll('select s.id, s.total, 1 / (s.id - 217) as part from sale s where s.id = any($1)')
  expect(failed).toBeGreaterThan(3)
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

test('a record whose query takes too long is put off and tried again, and the others are sent', async () => {
  await insert(1, 3)
  const slow = 'select s.id, s.total, case when s.id = 2 then pg_sleep(60) end from sale s where s.id = any($1)'
  const { skipped } = await captureAll(slow, {}, 500)
  expect(skipped).toEqual(['2'])
  expect((await submissions()).map(({ row, state }) => [row, state])).toEqual([
    ['1', 'queued'],
    ['3', 'queued'],
  ])
  const [problem] = await readProblems(ledger.pool, 10)
  expect(problem).toMatchObject({ kind: 'row_skipped', subject: '2' })
  expect(problem?.detail).toContain('57014')
  await ledger.pool.query('update outboxd.skipped_row set retry_at = now()')
  await captureAll('select s.id, s.total from sale s where s.id = any($1)')
  expect(await readProblems(ledger.pool, 10)).toEqual([])
  expect(await submissions()).toHaveLength(3)
})

test('a query that is too slow for many records is asked for fewer, and not for each alone', async () => {
  await insert(1, 40)
  const sizes: number[] = []
  const slow = 'select s.id, s.total, pg_sleep(0.05)::text as slept from sale s where s.id = any($1)'
  const { failed, skipped } = await captureAll(slow, { onCaptured: ({ length }) => sizes.push(length) }, 800)
  expect(await submissions()).toHaveLength(40)
  expect(skipped).toEqual([])
  expect(failed).toBeGreaterThan(0)
  // Without that each failure is followed by batches down to one record.
  expect(Math.min(...sizes.slice(0, -1))).toBeGreaterThan(2)
})

test('a lock on a table of the query puts the rows off, and blocks nobody', async () => {
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
    {},
    500,
  )
  expect(skipped).toEqual(['1'])
  expect(await submissions()).toEqual([])
})

test('a query that is wrong stops capture as a whole, and says which file', async () => {
  await insert(1, 3)
  await expect(captureAll('select id from nothing where id = any($1)')).rejects.toThrow(
    'test.yaml: the query of "source" failed: relation "nothing" does not exist',
  )
  await expect(
    captureAll('with w as (delete from sale returning *) select * from w where id = any($1)'),
  ).rejects.toThrow(/test.yaml: .* must be at the top level/)
  expect(await submissions()).toEqual([])
})

test('contents beyond what may be in memory at once are read in the next batch, in order', async () => {
  await insert(1, 5)
  const large = `select s.id, s.total, repeat('x', 900000 + s.id) as note from sale s where s.id = any($1)`
  const batches: number[] = []
  await ledger.pool.query('insert into sale select n, 1 from generate_series(6, 40) n')
  await captureAll(large, { onCaptured: ({ length }) => batches.push(length) })
  expect(batches).toEqual([17, 17, 6])
  expect(await submissions()).toHaveLength(40)
})

test('a source reads as the row is when it is taken', async () => {
  await insert(1, 1)
  await ledger.pool.query('update sale set total = 99')
  await captureAll('select s.id, s.total from sale s where s.id = any($1)')
  expect(await submissions()).toMatchObject([{ body: '{"total":99.00}' }])
})
