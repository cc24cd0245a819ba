import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readRequestRate } from '../../../src/sandbox/control/controlQueries.ts'
import { createDatabase } from '../../support/database.ts'

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
