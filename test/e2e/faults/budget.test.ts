import type pg from 'pg'
import { expect, test } from 'vitest'
import { standingProblemsSql } from '../../../src/ledger/problems.ts'
import { startDaemonProcess } from '../../support/daemon.ts'
import { fullestWindow } from '../../support/fullestWindow.ts'
import { openForFile } from '../../support/openForFile.ts'
import { readMetric } from '../../support/scrape.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup, through } from './harness.ts'

/** Instances agree on the budget, and report a problem if they cannot. */

const harness = openForFile(() => setup())

/** Makes the daemons that stopped or were killed look as if that had been long ago, so that their settings do not count. */
const forgetStoppedDaemons = (pool: pg.Pool) =>
  pool.query(
    `delete from outboxd.instance where stopped_at is not null or beat_at < clock_timestamp() - interval '3 s'`,
  )

async function problems(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ kind: string }>(`select kind from ${standingProblemsSql}`)
  return rows.map(({ kind }) => kind)
}

/** Times at which requests arrived at the service, tokens included. */
async function readArrivals({ control }: Harness): Promise<number[]> {
  const { rows } = (await control('GET', 'ledger?limit=10000')) as { rows: { arrivedAt: string }[] }
  return rows.map(({ arrivedAt }) => Date.parse(arrivedAt))
}

test('a daemon with a different limit or window: the ledger’s holds until the last daemon with it stops', async () => {
  const old = await harness.start({ RATE_LIMIT_REQUESTS: '200' })
  const fresh = await harness.start()
  const limit = async () => (await harness.pool.query('select rate_limit as n from outboxd.ledger')).rows[0]?.n
  await until(
    () => problems(harness.pool),
    (kinds) => kinds.includes('settings_differ'),
  )
  expect(await limit()).toBe(200)
  await old.stop()
  await forgetStoppedDaemons(harness.pool)
  await until(limit, (requests) => requests === 500)
  await until(
    () => problems(harness.pool),
    (kinds) => kinds.length === 0,
  )
  await fresh.stop()
})

test('a window of 1 s, a database 24 ms away: nearly full speed', async () => {
  await using far = await setup({ processingTime: 'constant:0.01' })
  await far.postgres.setFault({ kind: 'delay', ms: 12 })
  const daemon = await far.start({
    DATABASE_URL: through(far.postgres, far.env.DATABASE_URL ?? ''),
    RATE_LIMIT_REQUESTS: '20',
    RATE_LIMIT_WINDOW_SECONDS: '1',
  })
  for (let n = 0; n < 40; n++) await far.insert(`far${n}-`)
  const completed = () =>
    far.pool
      .query<{ n: number }>(`select count(*)::int as n from outbox where status = 'completed'`)
      .then(({ rows }) => rows[0]?.n ?? 0)
  const beganMs = performance.now()
  await until(completed, (n) => n === 40)
  // 40 records are some 80 requests: four windows.
  expect(performance.now() - beganMs).toBeLessThan(30_000)
  expect(await readMetric(daemon, 'outboxd_problems{kind="budget_starved"}')).toBe(0)
})

test('COMMITs so slow that deadlines pass: queued again, a problem', async () => {
  await using slow = await setup()
  const daemon = await slow.start()
  await slow.insert('fast-')
  await slow.becomes('fast-', 'completed')
  await slow.pool.query(`
    create function sleep_once() returns trigger language plpgsql as $$ begin
      if current_setting('test.slept', true) is distinct from 'yes' then
        perform pg_sleep(3.1), set_config('test.slept', 'yes', true);
      end if;
      return null;
    end $$;
    create constraint trigger sleep_once after insert on outboxd.request deferrable initially deferred
      for each row execute function sleep_once()`)
  for (let n = 0; n < 6; n++) await slow.insert(`late${n}-`)
  await until(
    () => problems(slow.pool),
    (kinds) => kinds.includes('budget_starved'),
  )
  await slow.pool.query('drop trigger sleep_once on outboxd.request')
  expect(await slow.becomes('late5-', 'completed')).toMatchObject({ effects: 1 })
  await until(
    () => problems(slow.pool),
    (kinds) => kinds.length === 0,
  )
  expect(await readMetric(daemon, 'outboxd_problems{kind="budget_starved"}')).toBeDefined()
})

test('a kill, a stop, a start and a lower limit among four daemons: no window holds more than the limit', async () => {
  await using busy = await setup()
  const windowMs = 2_000
  const daemonWith = (requests: number) =>
    startDaemonProcess({
      ...busy.env,
      RATE_LIMIT_REQUESTS: String(requests),
      RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1_000),
      REQUEST_TIMEOUT_SECONDS: '3',
    })
  const arrivals = () => readArrivals(busy)
  const untilMore = async (more: number) => {
    const before = (await arrivals()).length
    await until(arrivals, ({ length }) => length >= before + more, 60_000)
  }
  for (let n = 0; n < 500; n++) await busy.insert(`busy${n}-`)
  await using first = await daemonWith(30)
  await using second = await daemonWith(30)
  await using third = await daemonWith(30)
  await untilMore(60)
  first.signal('SIGKILL')
  second.signal('SIGSTOP')
  await untilMore(30)
  second.signal('SIGCONT')
  await using _strict = await daemonWith(12)
  await second.stop()
  await third.stop()
  await until(
    async () => {
      await forgetStoppedDaemons(busy.pool)
      return busy.pool.query('select from outboxd.ledger where rate_limit = 12')
    },
    ({ rowCount }) => rowCount === 1,
  )
  const loweredMs = Date.now()
  await untilMore(60)
  const all = await arrivals()
  expect(fullestWindow(all, windowMs)).toBeLessThanOrEqual(30)
  const strict = all.filter((atMs) => atMs > loweredMs + windowMs)
  expect(strict.length).toBeGreaterThan(24)
  expect(fullestWindow(strict, windowMs)).toBeLessThanOrEqual(12)
})

test.each([
  { limit: 10 },
  { limit: 100 },
])('three daemons share a limit ($limit): it is used, and never exceeded', async ({ limit }) => {
  await using busy = await setup()
  const windowMs = 6_000
  await busy.insert('busy-')
  await busy.pool.query('insert into outbox (type, payload) select type, payload from outbox, generate_series(1, $1)', [
    limit * 3,
  ])
  const env = { ...busy.env, RATE_LIMIT_REQUESTS: String(limit), RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1_000) }
  await using _first = await startDaemonProcess(env)
  await using _second = await startDaemonProcess(env)
  await using _third = await startDaemonProcess(env)
  await until(
    async () => (await busy.pool.query('select from outboxd.request where over_at < clock_timestamp()')).rowCount ?? 0,
    (requests) => requests > 3 * limit,
  )
  const atMs = (await readArrivals(busy)).toSorted((a, b) => a - b)
  expect(fullestWindow(atMs, windowMs)).toBeLessThanOrEqual(limit)
  // The daemons start and pace submissions in the first window. A window of any length loses the same time: what an answer
  // and the next claim take. 3 s are 5 % of a window of 60 s.
  expect((atMs[3 * limit] ?? Number.NaN) - (atMs[limit] ?? 0)).toBeLessThan(2 * (windowMs + 3_000))
})

test.each([
  { requests: 2, tokenSeconds: 2 },
  { requests: 1, tokenSeconds: 3 },
])('a limit of 1 or 2, and tokens that barely outlast the window ($requests, $tokenSeconds): records get through', async ({
  requests,
  tokenSeconds,
}) => {
  await using small = await setup({ tokenLifetimeSeconds: tokenSeconds })
  await small.start({ RATE_LIMIT_REQUESTS: String(requests), RATE_LIMIT_WINDOW_SECONDS: '2' })
  for (const marker of ['first-', 'second-']) await small.insert(marker)
  for (const marker of ['first-', 'second-'])
    await until(
      () => small.outcome(marker),
      ({ status }) => status === 'completed',
    )
})
