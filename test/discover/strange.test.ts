import { expect, test } from 'vitest'
import { startStrangeService, strangenesses } from '../support/strangeServices.ts'
import { ask, customers } from './ask.ts'

/** What is no service gets a clear end within a bounded time, and no harm. */

const quick = { REQUEST_TIMEOUT_SECONDS: '1' }

test.each(strangenesses)('where %s answers in place of the issuer, one request is all', async (kind) => {
  await using strange = await startStrangeService(kind)
  const { code, findings, requests } = await ask(strange.url, customers, quick)
  expect(code).toBe(1)
  expect(requests).toBe(1)
  expect(findings['token-unit']).toMatchObject({
    certainty: 'not asked',
    why: expect.stringMatching(/^there is no token: /),
  })
  expect(strange.elsewhere).toEqual([])
})

test.each(strangenesses)('where %s answers behind an issuer that gives tokens, nothing is created', async (kind) => {
  await using strange = await startStrangeService(kind, { givesTokens: true })
  const startedMs = performance.now()
  const { findings, requests } = await ask(strange.url, customers, quick)
  expect(performance.now() - startedMs).toBeLessThan(20_000)
  expect(strange.asked.filter((name) => name.startsWith('POST /api/'))).toEqual([])
  expect(strange.elsewhere).toEqual([])
  expect(requests).toBeLessThanOrEqual(3)
  expect(findings.submission).toMatchObject({ certainty: 'not asked', why: expect.stringContaining('the first call') })
})
