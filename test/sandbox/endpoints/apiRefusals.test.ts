import { request } from 'node:http'
import { beforeEach, describe, expect, test } from 'vitest'
import { openForFile } from '../../support/openForFile.ts'
import { type Json, order, setup, submission } from '../setup.ts'

const s = openForFile(() => setup({ processingTime: 'constant:0', bodyLimitBytes: 2048 }))
beforeEach(async () => {
  await s.control('DELETE', '/settings')
})

const submit = (body: unknown = submission(), headers?: Record<string, string>) =>
  s.call('POST', '/api/v1/data', body, headers)

async function askToken(body: string | Buffer, headers: Record<string, string> = {}) {
  const response = await fetch(`${s.sandbox.url}/oauth/token`, {
    method: 'POST',
    body: typeof body === 'string' ? body : new Uint8Array(body),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  })
  return { response, json: (await response.json()) as Json }
}
const form = 'grant_type=client_credentials&client_id=sandbox&client_secret=sandbox-secret'

/** Sends bytes that fetch would not send. */
async function sendBytes(path: string, body: Buffer, contentType = 'application/json'): Promise<number | undefined> {
  const authorization = `Bearer ${await s.token()}`
  return new Promise((resolve, reject) => {
    const sent = request(`${s.sandbox.url}${path}`, {
      method: 'POST',
      headers: { authorization, 'content-type': contentType },
    })
    sent.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject)
    sent.end(body)
  })
}

describe('an invalid customerId', () => {
  const invalid = (): [string, () => Promise<{ status: number; json: Json }>][] => [
    ['too long', () => submit(submission({}, 'C1234567890'))],
    ['empty', () => submit(submission({}, ''))],
    ['missing', () => submit({ data: submission().data })],
    ['not a uuid', () => s.call('POST', '/api/v1/orders', { ...order(), customerId: 'C1' })],
  ]

  test.each(invalid())('that is %s gets 400, without a code unless invalidCustomerCode is set', async (_what, send) => {
    const plain = await send()
    expect([plain.status, plain.json.code]).toEqual([400, undefined])
    await s.control('PATCH', '/settings', { invalidCustomerCode: 'E001' })
    const coded = await send()
    expect([coded.status, coded.json.code, coded.json.errors[0].field]).toEqual([400, 'E001', 'customerId'])
  })

  test('does not give a code to a 400 about another field', async () => {
    await s.control('PATCH', '/settings', { invalidCustomerCode: 'E001' })
    expect((await submit(submission({ field1: 'none' }))).json.code).toBeUndefined()
  })
})

describe('statuses that the interface does not show', () => {
  test('can be set for an unknown id and for an address that is not allow-listed', async () => {
    await s.control('PATCH', '/settings', { unknownIdStatus: 410, addressStatus: 403 })
    expect((await s.call('GET', '/api/v1/data/none')).status).toBe(410)
    expect((await s.call('GET', `/api/v1/orders/${crypto.randomUUID()}`)).status).toBe(410)
    await s.control('PATCH', '/settings', { allowedAddresses: ['192.0.2.1'] })
    expect((await submit()).status).toBe(403)
  })

  test.each([
    ['GET', '/api/v1/data', 'POST'],
    ['PUT', '/api/v1/orders', 'POST'],
    ['DELETE', '/api/v1/data/1', 'GET'],
    ['POST', `/api/v1/orders/${crypto.randomUUID()}`, 'GET'],
    ['GET', '/oauth/token', 'POST'],
    ['POST', '/openapi.json', 'GET'],
  ])('%s %s gets 405 with the allowed method', async (method, path, allow) => {
    const answer = await s.call(method, path)
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow])
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/)
  })
})

describe('X-RateLimit-Remaining', () => {
  test('is on every answer of the API and of the token endpoint', async () => {
    const answers = [
      await submit(),
      await submit({}),
      await submit(submission(), { authorization: 'Bearer none' }),
      await s.call('GET', '/api/v1/data/none'),
      await s.call('GET', '/api/v1/data'),
      await s.call('GET', '/api/v7'),
      await submit('x'.repeat(3000)),
      await submit(submission(), { 'content-type': 'text/plain' }),
      (await askToken(form)).response,
      (await askToken('grant_type=other')).response,
      (await askToken('x'.repeat(3000))).response,
      await s.call('GET', '/oauth/token'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 401, 404, 405, 404, 413, 415, 200, 400, 413, 405])
    for (const { headers } of answers) expect(headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
  })

  test("of a token request is its client's, as in the next API call", async () => {
    await submit()
    const remaining = Number((await askToken(form)).response.headers.get('x-ratelimit-remaining'))
    expect(Number((await submit()).headers.get('x-ratelimit-remaining'))).toBe(remaining - 1)
  })
})

describe('WWW-Authenticate of a 401', () => {
  const challenge = async (authorization: string) =>
    (await submit(submission(), { authorization })).headers.get('www-authenticate')

  test('names no error without a token, and invalid_token for an invalid one (RFC 6750, 3)', async () => {
    expect(await challenge('')).toBe('Bearer realm="sandbox"')
    expect(await challenge('Basic c2FuZGJveDpzYW5kYm94')).toBe('Bearer realm="sandbox"')
    expect(await challenge('Bearer none')).toMatch(
      /^Bearer realm="sandbox", error="invalid_token", error_description="/,
    )
    await s.control('PATCH', '/settings', { allowedAddresses: ['192.0.2.1'] })
    const listed = await submit()
    expect(listed.headers.get('www-authenticate')).toContain('error="invalid_token"')
  })

  test('of the token endpoint is Bearer if Bearer was sent, and Basic otherwise', async () => {
    const wrong = form.replace('sandbox-secret', 'wrong')
    expect((await askToken(wrong)).response.headers.get('www-authenticate')).toBe('Basic realm="sandbox"')
    const withBearer = await askToken(wrong, { authorization: 'Bearer none' })
    expect(withBearer.response.headers.get('www-authenticate')).toBe('Bearer realm="sandbox"')
  })
})

test('an empty Idempotency-Key counts as no key', async () => {
  const answers = [
    await submit(submission(), { 'idempotency-key': '' }),
    await submit(submission(), { 'idempotency-key': '' }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 200])
  expect((await s.control('GET', '/ledger')).rows.at(-1).idempotencyKey).toBeNull()
})

describe('the lifetime of a token', () => {
  const claims = (token: string): Json => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

  test.each([
    ['seconds', 7, 7],
    ['minutes', 90, 120],
    ['milliseconds', 3, 3],
  ])('lasts at least its whole expires_in (%s)', async (expiresInUnit, tokenLifetimeSeconds, seconds) => {
    await s.control('PATCH', '/settings', { expiresInUnit, tokenLifetimeSeconds })
    for (let n = 0; n < 20; n += 1) {
      const askedSeconds = Date.now() / 1000
      const { json } = await askToken(form)
      const { exp, iat } = claims(json.access_token)
      expect(Number.isInteger(exp)).toBe(true)
      expect(exp - askedSeconds).toBeGreaterThanOrEqual(seconds)
      expect(exp - iat).toBeLessThanOrEqual(seconds + 1)
    }
  })
})

test('E003 has Retry-After: 300 s as in the interface, or as set', async () => {
  await s.control('PATCH', '/settings', { down: true })
  expect((await submit()).headers.get('retry-after')).toBe('300')
  await s.control('PATCH', '/settings', { e003RetryAfterSeconds: 7 })
  expect((await submit()).headers.get('retry-after')).toBe('7')
  await s.control('PATCH', '/settings', { e003RetryAfterSeconds: 0 })
  expect((await submit()).headers.get('retry-after')).toBeNull()
})

describe('a body that is not UTF-8 gets 400', () => {
  const bytes = (text: string, ...wrong: number[]) =>
    Buffer.concat([Buffer.from(text), Buffer.from(wrong), Buffer.from('"]}')])
  const start = `{"customerId":"${order().customerId}","items":["`

  test.each([
    ['a byte of Latin-1', [0xfc]],
    ['a truncated character', [0xc3]],
    ['a surrogate, encoded', [0xed, 0xa0, 0x80]],
  ])('with %s', async (_what, wrong) => {
    expect(await sendBytes('/api/v1/orders', bytes(start, ...wrong))).toBe(400)
    const secret = Buffer.concat([Buffer.from(form), Buffer.from(wrong)])
    expect(await sendBytes('/oauth/token', secret, 'application/x-www-form-urlencoded')).toBe(400)
  })

  test('with a different charset', async () => {
    const latin1 = { 'content-type': 'application/json; charset=iso-8859-1' }
    expect((await submit(submission(), latin1)).status).toBe(400)
    expect((await submit(submission(), { 'content-type': 'application/json;charset="UTF-8"' })).status).toBe(200)
    const { json } = await askToken(form, { 'content-type': 'application/x-www-form-urlencoded; charset=utf-16' })
    expect(json.error).toBe('invalid_request')
  })

  test('with a percent-encoded byte in a form', async () => {
    expect((await askToken(`${form}%ff`)).json.error).toBe('invalid_request')
  })
})

describe('an order date', () => {
  const withDate = async (order_date: string) => (await submit(submission({ order_date }))).status

  test.each([
    '2026-11-21T09:30:00Z',
    '2026-11-21T09:30Z',
    '2026-11-21t09:30:00z',
    '2026-11-21T09:30:00.123456Z',
    '2026-11-21T09:30:00,5Z',
    '2026-11-21T09:30:00+00:00',
    '2024-02-29T00:00:00Z',
  ])('may be %s', async (date) => {
    expect(await withDate(date)).toBe(200)
  })

  test.each([
    '2026-11-21',
    '2026-11-21T09:30:00',
    '2026-11-21T09:30:00+01:00',
    '20261121T093000Z',
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-11-21T24:00:00Z',
    '2026-11-21 09:30:00Z',
  ])('may not be %s', async (date) => {
    expect(await withDate(date)).toBe(400)
  })
})
