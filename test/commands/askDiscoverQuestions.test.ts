import { expect, test } from 'vitest'
import { type Asked, ask } from '../discover/ask.ts'
import { setup } from '../sandbox/setup.ts'
import { openBreaker } from '../support/breaker.ts'
import { spendLimit } from '../support/ledger.ts'
import { openForFile } from '../support/openForFile.ts'
import { openFixtureForFile } from './fixture.ts'

/** Discover's requests count against the budget of the daemons, and it respects their pauses. */

const fixture = openFixtureForFile()
const service = openForFile(() => setup())

const askWithLedger = (only: string, env: Record<string, string> = {}): Promise<Asked> =>
  ask(service.sandbox.url, { only, ledger: true }, { DATABASE_URL: fixture.ledger.url, ...env })

test('each request counts', async () => {
  const { requests, findings } = await askWithLedger('token-unit,unknown-id')
  expect(findings['unknown-id']).toMatchObject({ found: '404' })
  expect(requests).toBe(4)
  expect(await fixture.answeredRequests()).toBe(4)
})

test('while sending is paused, discover sends nothing', async () => {
  await openBreaker(fixture.ledger.pool, { cause: 'throttled', detail: 'too many' })
  const { requests, findings } = await askWithLedger('unknown-id')
  expect(requests).toBe(0)
  expect(findings['unknown-id']).toMatchObject({
    certainty: 'not asked',
    why: expect.stringMatching(/paused \(throttled\): too many/),
  })
})

test('if no request is free, discover says so and sends nothing', async () => {
  await spendLimit(fixture.ledger.pool)
  const { requests, findings } = await askWithLedger('unknown-id', { RATE_LIMIT_WINDOW_SECONDS: '1' })
  expect(requests).toBe(0)
  expect(findings['unknown-id']).toMatchObject({
    why: expect.stringContaining('a daemon or another client uses them all'),
  })
})

test('if the ledger has no budget, discover counts requests in memory, and says so', async () => {
  await fixture.ledger.reset()
  const { requests, messages } = await askWithLedger('unknown-id')
  expect(requests).toBe(4)
  expect(messages).toContain('requests are counted in memory')
})
