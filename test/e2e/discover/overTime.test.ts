import { beforeEach, describe, expect, test } from 'vitest'
import type { SettingsPatch } from '../../../src/sandbox/sandboxSettings.ts'
import { ask, customers } from '../../discover/ask.ts'
import { setup } from '../../sandbox/setup.ts'
import { openForFile } from '../../support/openForFile.ts'

/** Findings that take time, or that use up the limit. */

const service = openForFile(() => setup({ processingTime: 'constant:0.1', bodyLimitBytes: 100_000 }))
beforeEach(() => service.control('DELETE', '/settings'))

const set = (settings: SettingsPatch) => service.control('PATCH', '/settings', settings)

test.each<[SettingsPatch, string]>([
  [{}, 'up to 12 s'],
  [{ rateLimitWindowSeconds: 90 }, 'longer than 12 s'],
])('discover finds that the window of a service with %j is %s', async (settings, window) => {
  await service.control('DELETE', '/ledger')
  await set({ rateLimitRequests: 40, rateLimitWindowSeconds: 12, ...settings })
  const options = { ...customers, only: 'rate-limit,rate-window', rate: true }
  const assumed = { RATE_LIMIT_REQUESTS: '40', RATE_LIMIT_WINDOW_SECONDS: '12' }
  const { findings, set: variables } = await ask(service.sandbox.url, options, assumed)
  expect(findings['rate-window'], findings['rate-window']?.why).toMatchObject({ found: window })
  expect(Number(variables.RATE_LIMIT_REQUESTS ?? 40)).toBeGreaterThan(0)
})

describe('a token', () => {
  test.runIf(process.env.LONG)(
    'whose lifetime has no unit: discover waits for its end and finds the unit',
    async () => {
      await set({ tokenForm: 'opaque', expiresInUnit: 'milliseconds', tokenLifetimeSeconds: 2 })
      const asked = await ask(service.sandbox.url, { only: 'token-lifetime', slow: true })
      expect(asked.findings['token-lifetime']).toMatchObject({ found: expect.stringMatching(/ to /), differs: true })
      expect(asked.set).toEqual({ TOKEN_EXPIRES_IN_UNIT: 'milliseconds' })
    },
  )

  test('that ends earlier than it says: discover sets TOKEN_REFRESH_SECONDS', async () => {
    await set({ tokenLifetimeSeconds: 15, tokenHeldSeconds: 12 })
    const asked = await ask(service.sandbox.url, { only: 'token-lifetime', slow: true }, { TOKEN_REFRESH_SECONDS: '1' })
    expect(asked.findings['token-lifetime']).toMatchObject({ certainty: 'likely', differs: true })
    expect(Number(asked.set.TOKEN_REFRESH_SECONDS)).toBeGreaterThan(2)
  })

  test('that ends while discover asks: discover renews it', async () => {
    await set({ tokenLifetimeSeconds: 86_400, tokenHeldSeconds: 3, processingTime: 'constant:5' })
    const asked = await ask(service.sandbox.url, { ...customers, only: 'status-values' })
    expect(asked.findings['status-values']).toMatchObject({ found: 'pending, completed' })
  })
})

test('discover finds the largest accepted body, and sets PAYLOAD_MAX_BYTES', async () => {
  const asked = await ask(service.sandbox.url, { ...customers, only: 'body-size', size: true })
  const found = Number(asked.findings['body-size']?.found)
  expect(found).toBeGreaterThan(80_000)
  expect(found).toBeLessThanOrEqual(100_000)
  expect(asked.set).toEqual({ PAYLOAD_MAX_BYTES: String(found) })
})
