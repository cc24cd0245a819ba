import { expect, test } from 'vitest'
import { startForeignService } from '../../support/foreignService.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from '../faults/harness.ts'

const limit = { RATE_LIMIT_REQUESTS: '100', RATE_LIMIT_WINDOW_SECONDS: '60' }

test('the remaining count of orders, which have a lower limit, is not taken for another client', async () => {
  await using harness = await setup()
  await using service = await startForeignService({ limitsApart: { data: 1_000, orders: 40 } })
  for (let n = 0; n < 4; n++) {
    await harness.insert(`data-${n}-`)
    await harness.insert(`order-${n}-`, { type: 'order' })
  }
  await harness.start({ SERVICE_BASE_URL: service.url, SERVICE_AUTH_URL: service.url, ...limit })
  for (let n = 0; n < 4; n++) {
    await harness.becomes(`data-${n}-`, 'completed')
    await harness.becomes(`order-${n}-`, 'completed')
  }
  const { rowCount } = await harness.pool.query(`select from outboxd.request where purpose = 'other_client'`)
  expect(rowCount).toBe(0)
})

test('another client that spends from the limit is left its part, and status says so', async () => {
  await using harness = await setup()
  await using service = await startForeignService({ limitsApart: { data: 40, orders: 40 } })
  await harness.insert('data-')
  const env = { SERVICE_BASE_URL: service.url, SERVICE_AUTH_URL: service.url, ...limit }
  await harness.start(env)
  await harness.becomes('data-', 'completed')
  await until(
    () => statusSays({ ...harness.env, ...env }),
    (status) => /Another client spends from the budget, so outboxd leaves \d+ of 100 requests to it/.test(status),
  )
})
