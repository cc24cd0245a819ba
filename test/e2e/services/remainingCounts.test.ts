import { test } from 'vitest'
import { startForeignService } from '../../support/foreignService.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from '../faults/harness.ts'

const limit = { RATE_LIMIT_REQUESTS: '100', RATE_LIMIT_WINDOW_SECONDS: '60' }

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
