import { expect, test } from 'vitest'
import { startForeignService } from '../../support/foreignService.ts'
import { setup } from '../faults/harness.ts'

test('the remaining count of orders, which have a lower limit, is not taken for another client', async () => {
  await using harness = await setup()
  await using service = await startForeignService({ limitsApart: { data: 1_000, orders: 40 } })
  for (let n = 0; n < 4; n++) {
    await harness.insert(`data-${n}-`)
    await harness.insert(`order-${n}-`, { type: 'order' })
  }
  const limit = { RATE_LIMIT_REQUESTS: '100', RATE_LIMIT_WINDOW_SECONDS: '60' }
  await harness.start({ SERVICE_BASE_URL: service.url, SERVICE_AUTH_URL: service.url, ...limit })
  for (let n = 0; n < 4; n++) {
    await harness.becomes(`data-${n}-`, 'completed')
    await harness.becomes(`order-${n}-`, 'completed')
  }
  const { rowCount } = await harness.pool.query(`select from outboxd.request where purpose = 'other_client'`)
  expect(rowCount).toBe(0)
})
