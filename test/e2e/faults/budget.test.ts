import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readMetric } from '../../support/scrape.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup, through } from './harness.ts'

/** Instances agree on the budget, and report a problem if they cannot. */

let harness: Harness
beforeAll(async () => {
  harness = await setup()
})
afterAll(() => harness[Symbol.asyncDispose]())

async function problems(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ kind: string }>('select kind from outboxd.problem')
  return rows.map(({ kind }) => kind)
}

test('instances with different limits or windows: the strictest holds, a problem says so', async () => {
  const old = await harness.start({ RATE_LIMIT_REQUESTS: '200' })
  const fresh = await harness.start()
  const differ = () => readMetric(fresh, 'outboxd_problems{kind="settings_differ"}')
  await until(differ, (count) => count === 2)
  await until(
    () => readMetric(fresh, 'outboxd_rate_limit_capacity'),
    (requests) => requests === 200,
  )
  await old.stop()
  await until(differ, (count) => count === 0)
  await until(
    () => readMetric(fresh, 'outboxd_rate_limit_capacity'),
    (requests) => requests === 500,
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

test('a database so far away that permits expire: queued again, a problem', async () => {
  await using far = await setup()
  const daemon = await far.start({
    DATABASE_URL: through(far.postgres, far.env.DATABASE_URL ?? ''),
    RATE_LIMIT_WINDOW_SECONDS: '1',
  })
  await far.insert('near-')
  await far.becomes('near-', 'completed')
  await far.postgres.setFault({ kind: 'delay', ms: 400 })
  // One claim takes all these records, and all their permits expire at once.
  for (let n = 0; n < 6; n++) await far.insert(`far${n}-`)
  await until(
    () => problems(far.pool),
    (kinds) => kinds.includes('budget_starved'),
  )
  await far.postgres.setFault(null)
  expect(await far.becomes('far5-', 'completed')).toMatchObject({ effects: 1 })
  await until(
    () => problems(far.pool),
    (kinds) => kinds.length === 0,
  )
  expect(await readMetric(daemon, 'outboxd_problems{kind="budget_starved"}')).toBeDefined()
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
