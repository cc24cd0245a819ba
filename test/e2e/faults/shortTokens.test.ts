import { expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Harness, setup } from './harness.ts'

const paused = (causes: readonly string[]) => causes.filter((cause) => cause.startsWith('pause unauthorized'))

/** Starts a daemon that takes tokens to last 0.9 s, so that only the test's faults cause a 401. */
async function startShort(harness: Harness) {
  return harness.start({
    RATE_LIMIT_REQUESTS: '2',
    RATE_LIMIT_WINDOW_SECONDS: '1',
    TOKEN_EXPIRES_IN_UNIT: 'milliseconds',
  })
}

test('a token expires while its request waits: new token, no pause', async () => {
  await using harness = await setup({ tokenLifetimeSeconds: 900 })
  await harness.fault({ kind: 'answer', status: 401, endpoint: 'submit', times: 3 })
  await startShort(harness)
  await harness.insert('short-')
  const { causes, effects } = await harness.becomes('short-', 'completed')
  expect(causes.filter((cause) => cause.includes('401')).length).toBeGreaterThanOrEqual(3)
  expect(paused(causes)).toEqual([])
  expect(effects).toBe(1)
})

test('five tokens expire in a row: pause `unauthorized`', async () => {
  await using harness = await setup({ tokenLifetimeSeconds: 900 })
  await harness.fault({ kind: 'answer', status: 401, endpoint: 'submit' })
  await startShort(harness)
  await harness.insert('never-')
  await until(harness.pauses, (reasons) => reasons.includes('unauthorized'))
  await harness.control('DELETE', 'faults')
  expect(await harness.becomes('never-', 'completed')).toMatchObject({ effects: 1 })
})
