import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import {
  prunePeriodStatistics,
  readPeriodStatistics,
  sumRequestCountsByHour,
  writePeriodStatistics,
} from '../../src/ledger/periods.ts'
import { type Ledger, openLedger } from '../support/ledger.ts'
import { until } from '../support/until.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(async () => {
  await ledger.reset()
  // A minute that ends while a test looks at it would be another's.
  await until(secondOfMinute, (second) => second < 56)
})

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** Of the minute that is under way, counted as periods are: from five seconds after its beginning. */
async function secondOfMinute(): Promise<number> {
  const { rows } = await ledger.pool.query<{ second: number }>(
    `select extract(second from clock_timestamp() - interval '5 seconds')::float8 as second`,
  )
  return rows[0]?.second ?? 0
}

/** The beginning of the last minute, or hour, that is over by the ledger's clock. */
async function latest(span: 'minute' | 'hour' = 'minute'): Promise<number> {
  const { rows } = await ledger.pool.query<{ ms: number }>(
    `select extract(epoch from date_trunc($1, clock_timestamp() - interval '5 seconds', 'UTC') - ('1 ' || $1)::interval)::float8
       * 1000 as ms`,
    [span],
  )
  return rows[0]?.ms ?? 0
}

/** Records that ended at these times, each so long after its row was written. */
async function ended(state: string, ats: readonly number[], waitMs = 1_000): Promise<void> {
  const ids = await ledger.capture(ats.map(() => ({ error: 'no', body: null })))
  await ledger.pool.query(
    `update outboxd.submission s set state = $3, body = '{}', ended_at = to_timestamp(t.ms / 1000),
       recorded_at = to_timestamp((t.ms - $4) / 1000)
     from unnest($1::uuid[], $2::float8[]) t(id, ms) where s.id = t.id`,
    [ids, ats, state, waitMs],
  )
}

async function writeAll(span: 'minute' | 'hour', waiting: number | null = null): Promise<number> {
  let rounds = 1
  while ((await writePeriodStatistics(ledger.pool, span, waiting)).hasMore) rounds += 1
  return rounds
}

test('a minute that is over says how many records ended in it and how, how long they took, and what waits', async () => {
  const at = await latest()
  await ended('completed', [at, at + 1_000, at + 59_999], 2_000)
  await ended('completed', [at + 5_000], 10_000)
  await ended('failed', [at + 10])
  await ended('rejected', [at + 20])
  await ended('uncertain', [at + 30])
  // Long waits of what a person gives up say nothing of the service.
  await ended('discarded', [at + 30, at + 40], 90 * dayMs)
  await ledger.capture([{}, {}])
  await writePeriodStatistics(ledger.pool, 'minute', 40)
  const period = (await readPeriodStatistics(ledger.pool, 'minute', hourMs)).find(({ beganMs }) => beganMs === at)
  expect(period).toEqual({
    ...{ beganMs: at, completed: 4, failed: 1, rejected: 1, uncertain: 1, discarded: 2 },
    ...{ waitP50Ms: 2_000, waitP95Ms: expect.closeTo(7_600, 0), waiting: 42 },
  })
})

test('a new ledger begins with the last minute, an older one with its past, in small portions; what waited then is not known', async () => {
  await writePeriodStatistics(ledger.pool, 'minute', 3)
  expect(await readPeriodStatistics(ledger.pool, 'minute', dayMs)).toHaveLength(1)
  await ledger.reset()
  const at = await latest()
  await ended('completed', [at - 130 * minuteMs, at - 3 * minuteMs])
  expect(await writeAll('minute', 3)).toBe(3)
  const periods = await readPeriodStatistics(ledger.pool, 'minute', dayMs)
  expect(periods.length).toBeGreaterThanOrEqual(131)
  expect(periods.filter(({ completed }) => completed === 1).map(({ beganMs }) => beganMs)).toEqual([
    at - 130 * minuteMs,
    at - 3 * minuteMs,
  ])
  expect(periods.slice(0, -1).every(({ waiting }) => waiting === null)).toBe(true)
  expect(periods.at(-1)?.waiting).toBe(3)
})

test('minutes in which no daemon lived are written later; twice, and by two at once, changes nothing', async () => {
  await writePeriodStatistics(ledger.pool, 'minute', 1)
  const at = await latest()
  await ledger.pool.query(`update outboxd.period set began_at = began_at - interval '10 minutes'`)
  await ended('rejected', [at - 4 * minuteMs])
  await Promise.all([1, 2, 3].map(() => writePeriodStatistics(ledger.pool, 'minute', 1)))
  const periods = await readPeriodStatistics(ledger.pool, 'minute', dayMs)
  expect(periods.length).toBeGreaterThanOrEqual(11)
  expect(periods.reduce((sum, { rejected }) => sum + rejected, 0)).toBe(1)
  await writePeriodStatistics(ledger.pool, 'minute', 99)
  expect((await readPeriodStatistics(ledger.pool, 'minute', dayMs)).slice(0, periods.length)).toEqual(periods)
})

test('after a month without a daemon no more is made up for than is looked at', async () => {
  await writePeriodStatistics(ledger.pool, 'minute', 1)
  await ledger.pool.query(`update outboxd.period set began_at = began_at - interval '30 days'`)
  await writePeriodStatistics(ledger.pool, 'minute', 1)
  const [, second] = (await readPeriodStatistics(ledger.pool, 'minute', 60 * dayMs)).map(({ beganMs }) => beganMs)
  expect((await latest()) - (second ?? 0)).toBeLessThanOrEqual(2 * dayMs)
})

test('one daemon at a time writes them: another leaves it to that one', async () => {
  const busy = await ledger.pool.connect()
  try {
    await busy.query('begin')
    await busy.query('select pg_advisory_xact_lock(7167)')
    expect(await writePeriodStatistics(ledger.pool, 'minute', 1)).toEqual({ written: 0, hasMore: false })
  } finally {
    await busy.query('rollback')
    busy.release()
  }
})

test('an hour is told of its own records, with the most that waited in a minute of it', async () => {
  const at = await latest('hour')
  await ended('completed', [at, at + hourMs - 1], 3_000)
  await ended('completed', [at + 30 * minuteMs], 5_000)
  await ledger.pool.query(
    `insert into outboxd.period (span, began_at, completed, failed, rejected, uncertain, discarded, waiting)
     select 'minute', to_timestamp($1 / 1000.0) + i * interval '1 minute', 0, 0, 0, 0, 0, w
     from unnest(array[5, 70, null]) with ordinality t(w, i)`,
    [at],
  )
  await writePeriodStatistics(ledger.pool, 'hour', null)
  expect(await readPeriodStatistics(ledger.pool, 'hour', dayMs)).toEqual([
    {
      ...{ beganMs: at, completed: 3, failed: 0, rejected: 0, uncertain: 0, discarded: 0 },
      ...{ waitP50Ms: 3_000, waitP95Ms: expect.closeTo(4_800, 0), waiting: 70 },
    },
  ])
})

test('the requests of an hour are added up once it is over, once', async () => {
  const at = await latest('hour')
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

test('minutes are kept for two days, hours and their requests for 29', async () => {
  await ledger.pool.query(
    `insert into outboxd.period (span, began_at, completed, failed, rejected, uncertain, discarded)
     select span, now() - age, 0, 0, 0, 0, 0 from unnest(array['minute', 'hour']) span,
       unnest(array['47 hours', '49 hours', '28 days', '30 days']::interval[]) age`,
  )
  await ledger.pool.query(
    `insert into outboxd.request_hour select now() - age, 'status', 1, 0, 1, 0
     from unnest(array['28 days', '30 days']::interval[]) age`,
  )
  await prunePeriodStatistics(ledger.pool)
  const kept = (await ledger.pool.query('select span from outboxd.period order by began_at')).rows
  expect(kept.map(({ span }) => span)).toEqual(['hour', 'hour', expect.anything(), expect.anything()])
  expect((await ledger.pool.query('select from outboxd.request_hour')).rowCount).toBe(1)
})
