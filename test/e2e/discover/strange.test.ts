import { expect, test } from 'vitest'
import { ask, customers } from '../../discover/ask.ts'
import { startStrangeService, strangenesses } from '../../support/strangeServices.ts'
import { startTurning } from '../../support/turningService.ts'

/** If the address is not that of such a service, discover ends soon, with a clear reason and without side effects. */

const quick = { REQUEST_TIMEOUT_SECONDS: '1' }

test.each(strangenesses)('if %s answers instead of the issuer, discover stops after one request', async (kind) => {
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

test.each(strangenesses)('if %s answers behind an issuer that gives tokens, discover creates nothing', async (kind) => {
  await using strange = await startStrangeService(kind, { givesTokens: true })
  const startedMs = performance.now()
  const { findings, requests } = await ask(strange.url, customers, quick)
  expect(performance.now() - startedMs).toBeLessThan(20_000)
  expect(strange.asked.filter((name) => name.startsWith('POST /api/'))).toEqual([])
  expect(strange.elsewhere).toEqual([])
  expect(requests).toBeLessThanOrEqual(3)
  expect(findings.submission).toMatchObject({ certainty: 'not asked', why: expect.stringContaining('the first call') })
})

test('discover prints no token or secret, even if the service quotes them or its answer is cut off', async () => {
  await using service = await startTurning(({ body, authorization, isToken }) => {
    if (isToken) return { status: 200, body: tokenText('a-live-token') }
    return { status: 400, body: `{"message":"you sent ${authorization} with ${body}"}` }
  })
  const secret = 'p@ss w/+"word'
  const asked = await ask(service.url, customers, { ...quick, SERVICE_CLIENT_SECRET: secret })
  expect(asked.printed).not.toContain('a-live-token')

  await using issuer = await startTurning(({ body }) => ({ status: 401, body: `{"error_description":"of ${body}"}` }))
  const refused = await ask(issuer.url, customers, { ...quick, SERVICE_CLIENT_SECRET: secret })
  expect(refused.findings['token-unit']?.why).toContain('[redacted]')
  expect(refused.printed).not.toMatch(/p%40ss|word/)

  await using odd = await startTurning(() => ({
    status: 200,
    body: `{"access_token":"a-live-token","expires_in":${'['.repeat(50_000)}`,
  }))
  expect((await ask(odd.url, customers, quick)).printed).not.toContain('a-live-token')
})

test('discover asks nothing more after E003, and stops soon if the service hangs', async () => {
  await using down = await startTurning(({ isToken, calls }) => {
    if (isToken) return { status: 200, body: tokenText() }
    return calls > 5 ? { status: 500, body: '{"code":"E003"}' } : { status: 404, body: '{}' }
  })
  await ask(down.url, customers, quick)
  expect(down.calls()).toBe(6)

  await using hanging = await startTurning(({ isToken, calls }) => {
    if (isToken) return { status: 200, body: tokenText() }
    return calls > 5 ? null : { status: 404, body: '{}' }
  })
  await ask(hanging.url, customers, quick)
  expect(hanging.calls()).toBeLessThan(12) // an answer with a token in between counts as an answer
})

test('discover does not count a page with status 200 as an accepted record', async () => {
  await using service = await startTurning(({ isToken, method, body, calls }) => {
    if (isToken) return { status: 200, body: tokenText() }
    if (method === 'GET') return { status: 404, body: '{}' }
    if (!body.includes('customerId')) return { status: 400, body: '{}' }
    return calls > 3
      ? { status: 200, body: '<h1>Maintenance</h1>' }
      : { status: 200, body: JSON.stringify({ transactionId: `tx-${calls}`, status: 'accepted' }) }
  })
  const { findings, requests } = await ask(service.url, { customer: 'C1', only: 'own-id,field2,amount' }, quick)
  expect(requests).toBeLessThan(30)
  for (const question of ['field2', 'amount', 'own-id'])
    expect(findings[question]).toMatchObject({ found: null, why: expect.stringContaining('Maintenance') })
})

const tokenText = (accessToken = 'a-token', expiresIn = 600) =>
  JSON.stringify({ access_token: accessToken, token_type: 'Bearer', expires_in: expiresIn })

const ends: [string, { status: number; body: string } | null][] = [
  ['is not answered', null],
  ['is refused', { status: 401, body: '{}' }],
  ['is redirected', { status: 307, body: '' }],
  ['gets a page', { status: 200, body: '<h1>Please sign in</h1>' }],
]

test.each(ends)('if the first call %s, discover is sure of nothing and sets no variable', async (_, answer) => {
  await using strange = await startTurning(({ isToken }) => (isToken ? { status: 200, body: tokenText() } : answer))
  const { findings, contract, set } = await ask(strange.url, customers, quick)
  const surely = Object.entries(findings).filter(([, { certainty }]) => certainty === 'sure')
  expect(surely.map(([name]) => name)).toEqual([])
  expect(findings['unknown-id']).toMatchObject({ certainty: 'not asked', contract: {} })
  if (answer?.status === 307)
    expect(findings.address).toMatchObject({ certainty: 'unknown', cannot: expect.stringContaining('at a redirect') })
  expect(contract).toBe('')
  expect(set).toEqual({})
})

const troubles = [500, 502, 401]

test.each(troubles)('a %i that does not depend on the request leads to no finding', async (status) => {
  await using service = await startTurning(({ isToken, method, body, authorization, calls }) => {
    if (isToken) return { status: 200, body: tokenText() }
    if (authorization.includes('not-a-token')) return { status: 401, body: '{}' }
    if (method === 'GET') return calls === 1 ? { status: 404, body: '{}' } : { status, body: '{"error":"oops"}' }
    if (body.includes('UNKNOWN') || body.length > 500 || !body.includes('customerId'))
      return { status, body: '{"error":"oops"}' }
    return { status: 200, body: JSON.stringify({ transactionId: `tx-${calls}`, status: 'accepted' }) }
  })
  const only = 'unknown-path,unknown-order,unknown-customer,field2,bad-token'
  const { findings, contract } = await ask(service.url, { ...customers, only }, quick)
  for (const name of ['unknown-path', 'unknown-order', 'unknown-customer', 'field2'])
    expect(findings[name], name).toMatchObject({
      found: null,
      certainty: status === 401 ? expect.stringMatching(/unknown|not asked/) : 'unknown',
      why: expect.stringContaining(String(status)),
    })
  expect(findings['bad-token']).toMatchObject({ found: '401', certainty: 'sure' })
  expect(contract).toBe('bad_token=401')
})
