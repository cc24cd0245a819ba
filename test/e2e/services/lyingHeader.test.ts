import { expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { setup } from '../faults/harness.ts'

/** A wrong X-RateLimit-Remaining may make the daemon slow, but the daemon keeps its own limit. */

const recordsSent = 16

test.each([
  'zero',
  'full',
  'double',
] as const)('with a wrong X-RateLimit-Remaining (%s) each record is sent once, without a 429', {
  timeout: 240_000,
}, async (remainingValue) => {
  await using harness = await setup({ remainingValue, rateLimitRequests: 30, rateLimitWindowSeconds: 6 })
  for (let n = 0; n < recordsSent; n++) await harness.insert(`${remainingValue} ${n} `)
  const daemon = await harness.start({ RATE_LIMIT_REQUESTS: '30' })
  const completed = async () => {
    const { rows } = await harness.pool.query<{ count: number }>(
      `select count(*)::integer as count from outboxd.submission where state = 'completed'`,
    )
    return rows[0]?.count
  }
  await until(completed, (count) => count === recordsSent, 180_000)
  await daemon.stop()
  const { rows } = (await harness.control('GET', 'counts')) as { rows: { status: number; effects: string }[] }
  expect(rows.reduce((sum, { effects }) => sum + Number(effects), 0)).toBe(recordsSent)
  expect(rows.filter(({ status }) => status === 429)).toEqual([])
})
