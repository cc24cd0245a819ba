import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { pruneRequestCounts, sumRequestCountsByHour } from '../../src/ledger/requestCounts.ts'
import { type Ledger, openLedger } from '../support/ledger.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(() => ledger.reset())

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** The beginning of the last hour that is over by the ledger's clock. */
async function lastHour(): Promise<number> {
  const { rows } = await ledger.pool.query<{ ms: number }>(
    `select extract(epoch from date_trunc('hour', clock_timestamp() - interval '5 seconds', 'UTC') - interval '1 hour')::float8
       * 1000 as ms`,
  )
  return rows[0]?.ms ?? 0
}

test('the requests of an hour are summed once, when the hour is over', async () => {
  const at = await lastHour()
  const count = (minute: number) =>
    ledger.pool.query(
      `insert into outboxd.request_count values (to_timestamp($1 / 1000.0), 'submit', $2, 10, 1, 9, 2)`,
      [minute, randomUUID()],
    )
  for (const minute of [at - 5 * hourMs, at, at + 59 * minuteMs, at + hourMs]) await count(minute)
  await sumRequestCountsByHour(ledger.pool)
  await sumRequestCountsByHour(ledger.pool)
  const { rows } = await ledger.pool.query(
    `select extract(epoch from hour)::float8 * 1000 as at, kind, requests::int, failed::int, answered::int, slow::int
     from outboxd.request_hour order by hour`,
  )
  expect(rows).toEqual([
    { at: at - 5 * hourMs, kind: 'submit', requests: 10, failed: 1, answered: 9, slow: 2 },
    { at, kind: 'submit', requests: 20, failed: 2, answered: 18, slow: 4 },
  ])
})

test('hours are kept for 29 days', async () => {
  await ledger.pool.query(
    `insert into outboxd.request_hour select now() - age, 'status', 1, 0, 1, 0
     from unnest(array['28 days', '30 days']::interval[]) age`,
  )
  await pruneRequestCounts(ledger.pool)
  expect((await ledger.pool.query('select from outboxd.request_hour')).rowCount).toBe(1)
})
