import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { deleteOldRequests, readRequestRate } from '../../../src/sandbox/control/controlQueries.ts'
import { createDatabase } from '../../support/database.ts'
import { openForFile } from '../../support/openForFile.ts'
import { type Setup, setup } from '../setup.ts'

test('the maximum in a window equals that of counting at each request', async () => {
  await using database = await createDatabase('sandbox_template')
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(3000), { maxLength: 60 }),
      fc.integer({ min: 1, max: 700 }),
      async (times, windowUs) => {
        const most = Math.max(0, ...times.map((end) => times.filter((at) => at <= end && end - at < windowUs).length))
        await database.pool.query('truncate sandbox.ledger')
        await database.pool.query(
          `
        insert into sandbox.ledger (arrived_at, endpoint, method, path, address, status, dropped, counted)
        select timestamptz '2026-01-01' + n * interval '1 microsecond', 'submit', 'POST', '/api/v1/data', '', 200, false, true
        from unnest($1::integer[]) n
        `,
          [times],
        )
        const { maxArrived, maxAdmitted } = await readRequestRate(database.pool, windowUs / 1_000_000, null)
        expect([maxArrived, maxAdmitted]).toEqual([most, most])
      },
    ),
    { numRuns: 40 },
  )
})

describe('the rate of the ledger', () => {
  const fill = `
    insert into sandbox.ledger (arrived_at, endpoint, method, path, client, address, body, status, dropped, counted)
    select timestamptz '2026-01-01' + n * interval '2 milliseconds', 'submit', 'POST',
      case when n % 10 = 0 then '/oauth/token' else '/api/v1/data' end,
      case when n % 3 > 0 then 'client ' || n % 3 end, '127.0.0.1', repeat('x', 200), 200, false, n % 2 = 0
    from generate_series(1, $1::integer) n
  `

  test('counts arrivals of all clients together, admissions of each client separately, and no token requests', async () => {
    await using database = await createDatabase('sandbox_template')
    expect(await readRequestRate(database.pool, 60, null)).toMatchObject({ requests: 0, maxArrived: 0, maxAdmitted: 0 })
    await database.pool.query(fill, [3000])
    // In 600 ms there are 300 rows: without the tokens 270, of which 40 are admitted of each of the three.
    expect(await readRequestRate(database.pool, 0.6, null)).toEqual({
      windowSeconds: 0.6,
      requests: 2700,
      maxArrived: 270,
      maxAdmitted: 40,
    })
  })

  // LONG=1 npx vitest run --config test/vitest.config.ts test/sandbox/control/controlQueries
  if (process.env.LONG)
    test('300,000 rows take less than three seconds', { timeout: 120_000 }, async () => {
      await using database = await createDatabase('sandbox_template')
      await database.pool.query(fill, [300_000])
      const started = performance.now()
      expect((await readRequestRate(database.pool, 60, null)).requests).toBe(270_000)
      const tookMs = Math.round(performance.now() - started)
      process.stdout.write(`GET /_sandbox/rate over 300,000 rows: ${tookMs} ms\n`)
      expect(tookMs).toBeLessThan(3000)
    })
})

describe('trimming the ledger', () => {
  const hourUs = 3_600_000_000
  const nowUs = 1_800_000_000_000_000

  const database = openForFile(() => createDatabase('sandbox_template'))
  beforeEach(async () => {
    await database.pool.query('truncate sandbox.ledger, sandbox.transactions restart identity')
  })

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
})
