import * as oauth from 'oauth4webapi'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contractTarget, type Target } from './target.ts'

/**
 * docs/reference/interface.md, section by section, over HTTP only. Tests what the interface describes, and no more.
 *
 * Runs against a sandbox, or against the address in CONTRACT_URL; test/contract/target.ts explains the variables.
 * Section 8 comes last because it uses up the rate limit.
 */

// biome-ignore lint/suspicious/noExplicitAny: this test checks the type of each answer
type Json = any

interface Answer {
  status: number
  headers: Headers
  json: Json
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const isoUtc = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]00:?00)$/

let target: Target
let token: Json
/** Number of polls so far. Processing times decide how many are needed. */
let polls = 0

beforeAll(async () => {
  target = await contractTarget(process.env)
  token = (await askToken({ client_id: target.clientId, client_secret: target.clientSecret })).json
})
afterAll(() => target[Symbol.asyncDispose]())

async function askToken(fields: Record<string, string>): Promise<Answer> {
  const form = new URLSearchParams({ grant_type: 'client_credentials', ...fields })
  return read(await fetch(`${target.authUrl}/oauth/token`, { method: 'POST', body: form, redirect: 'manual' }))
}

async function call(method: string, path: string, body?: unknown, authorization?: string): Promise<Answer> {
  const headers: Record<string, string> = { authorization: authorization ?? `Bearer ${token.access_token}` }
  if (body !== undefined) headers['content-type'] = 'application/json'
  const init = { method, headers, redirect: 'manual' as const }
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return read(await fetch(target.baseUrl + path, body === undefined ? init : { ...init, body: text }))
}

async function read(response: Response): Promise<Answer> {
  const text = await response.text()
  const isJson = /json/.test(response.headers.get('content-type') ?? '')
  return {
    status: response.status,
    headers: response.headers,
    json: isJson && text !== '' ? JSON.parse(text) : undefined,
  }
}

function submission(data: Record<string, unknown> = {}): Record<string, unknown> {
  return { customerId: target.customer, data: { field1: 'value1', field2: 'contract test', ...data } }
}

const submit = (body: unknown = submission()) => call('POST', '/api/v1/data', body)
const order = () => ({ customerId: target.orderCustomer, items: [{ sku: 'A', quantity: 1 }] })

/** Section 3.2: "repeats the status request until the status is completed or failed". */
async function untilEnded(path: string): Promise<Json> {
  let seen: Json
  const poll = async () => {
    polls += 1
    seen = (await call('GET', path)).json
    return seen.status
  }
  await expect.poll(poll, { timeout: target.waitMs, interval: target.pollMs }).toMatch(/^(completed|failed)$/)
  return seen
}

/** Section 7.1: `status`, with the header of section 8. */
function expectRefusal(answer: Answer, status: number): void {
  expect(answer.status).toBe(status)
  expect(answer.headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
}

/** The whole body as text, because the interface does not say where in it the error code is. */
function textOf({ json }: Answer): string {
  return JSON.stringify(json ?? '')
}

describe('1 and 9: JSON over HTTP, the version in the path', () => {
  test('answers are JSON', async () => {
    expect((await submit()).headers.get('content-type')).toMatch(/json/)
  })

  test('a path with an unknown version is refused', async () => {
    expect((await call('GET', '/api/v9/data/none')).status).toBeGreaterThanOrEqual(400)
  })
})

describe('2.1 and 4.1: the token', () => {
  test('is issued for client id and secret in a form', async () => {
    expect(token).toMatchObject({ access_token: expect.any(String), expires_in: expect.any(Number) })
    expect(token.token_type.toLowerCase()).toBe('bearer')
    expect(Number.isInteger(token.expires_in) && token.expires_in > 0).toBe(true)
  })

  test('is issued to an OAuth client library', async () => {
    const server = { issuer: target.authUrl, token_endpoint: `${target.authUrl}/oauth/token` }
    const client = { client_id: target.clientId }
    const response = await oauth.clientCredentialsGrantRequest(
      server,
      client,
      oauth.ClientSecretPost(target.clientSecret),
      new URLSearchParams(),
      { [oauth.allowInsecureRequests]: true },
    )
    const granted = await oauth.processClientCredentialsResponse(server, client, response)
    expect((await call('GET', '/api/v1/data/none', undefined, `Bearer ${granted.access_token}`)).status).not.toBe(401)
  })

  test('is not issued for a wrong secret (RFC 6749, 5.2)', async () => {
    const answer = await askToken({ client_id: target.clientId, client_secret: 'wrong' })
    expect([400, 401]).toContain(answer.status)
    expect(answer.json.error).toBe('invalid_client')
  })

  test('is not issued for another grant type', async () => {
    const fields = { client_id: target.clientId, client_secret: target.clientSecret, grant_type: 'password' }
    const answer = await askToken(fields)
    expect(answer.status).toBe(400)
    expect(['unsupported_grant_type', 'unauthorized_client', 'invalid_request']).toContain(answer.json.error)
  })

  test('is not issued for a form without credentials', async () => {
    const answer = await askToken({})
    expect([400, 401]).toContain(answer.status)
    expect(['invalid_request', 'invalid_client']).toContain(answer.json.error)
  })
})

describe('2.2, 2.3 and 4.2: submitting data', () => {
  test('is answered 200 with a transactionId, accepted and a time in UTC', async () => {
    const answer = await submit()
    expect(answer.status).toBe(200)
    expect(answer.json).toMatchObject({ transactionId: expect.any(String), status: 'accepted' })
    expect(answer.json.transactionId).not.toBe('')
    expect(answer.json.timestamp).toMatch(isoUtc)
  })

  test('gives every submission its own transactionId', async () => {
    const [one, two] = [await submit(), await submit()]
    expect(one.json.transactionId).not.toBe(two.json.transactionId)
  })

  test.each(['value1', 'value2', 'value3'])('accepts field1 %s', async (field1) => {
    expect((await submit(submission({ field1 }))).status).toBe(200)
  })

  test.each<[string, () => unknown]>([
    ['no customerId', () => ({ data: submission().data })],
    ['a customerId of 11 characters', () => ({ ...submission(), customerId: 'C1234567890' })],
    ['a customerId that is not a string', () => ({ ...submission(), customerId: 1 })],
    ['no data', () => ({ customerId: target.customer })],
    ['data that is not an object', () => ({ customerId: target.customer, data: 'text' })],
    ['no field1', () => submission({ field1: undefined })],
    ['a field1 that is not one of the three values', () => submission({ field1: 'value4' })],
    ['no field2', () => submission({ field2: undefined })],
    ['a field2 that is not a string', () => submission({ field2: 7 })],
    ['a body that is not JSON', () => '{"customerId":'],
  ])('refuses %s with 400', async (_what, body) => {
    expectRefusal(await submit(body()), 400)
  })
})

describe('2.4, 3.1 and 4.3: the status of a transaction', () => {
  test('goes from pending to completed or failed, and stays there', async () => {
    const { transactionId } = (await submit()).json
    const path = `/api/v1/data/${encodeURIComponent(transactionId)}`
    const first = await call('GET', path)
    expect(first.status).toBe(200)
    expect(first.json.transactionId).toBe(transactionId)
    expect(['pending', 'completed', 'failed']).toContain(first.json.status)
    const ended = await untilEnded(path)
    expect(ended.transactionId).toBe(transactionId)
    if (ended.status === 'failed') expect(ended.errorCode).toMatch(/\S/)
    else expect(ended.result).toBeTypeOf('object')
    expect((await call('GET', path)).json.status).toBe(ended.status)
  })

  test('is refused for an id that was never submitted', async () => {
    const answer = await call('GET', `/api/v1/data/${crypto.randomUUID()}`)
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
  })
})

describe('2.6, 3.2, 4.4 and 4.5: orders', () => {
  test('are created with 201, an id, a status and a time in UTC', async () => {
    const { status, json } = await call('POST', '/api/v1/orders', order())
    expect(status).toBe(201)
    expect(json.orderId).toMatch(uuid)
    expect(json.status).toBeTypeOf('string')
    expect(json.createdAt).toMatch(isoUtc)
  })

  test('are read with their id, status and items', async () => {
    const { orderId } = (await call('POST', '/api/v1/orders', order())).json
    const { status, json } = await call('GET', `/api/v1/orders/${orderId}`)
    expect(status).toBe(200)
    expect(json).toMatchObject({ orderId, status: expect.any(String), items: order().items })
  })

  test('are completed in time', async () => {
    const { orderId } = (await call('POST', '/api/v1/orders', order())).json
    expect((await untilEnded(`/api/v1/orders/${orderId}`)).orderId).toBe(orderId)
  })

  test.each<[string, () => unknown]>([
    ['no customerId', () => ({ items: [] })],
    ['a customerId that is not a uuid', () => ({ ...order(), customerId: 'C1' })],
    ['no items', () => ({ customerId: target.orderCustomer })],
    ['items that are not an array', () => ({ ...order(), items: 'many' })],
  ])('with %s are refused with 400', async (_what, body) => {
    expectRefusal(await call('POST', '/api/v1/orders', body()), 400)
  })
})

describe('5: authentication', () => {
  test.each<[string, string, unknown]>([
    ['POST', '/api/v1/data', { customerId: 'C1', data: { field1: 'value1', field2: '' } }],
    ['GET', '/api/v1/data/none', undefined],
    ['POST', '/api/v1/orders', { customerId: 'a3bb189e-8bf9-4888-9912-ace4e6543002', items: [] }],
    ['GET', '/api/v1/orders/a3bb189e-8bf9-4888-9912-ace4e6543002', undefined],
  ])('%s %s with a wrong token gets 401', async (method, path, body) => {
    expectRefusal(await call(method, path, body, 'Bearer not.a.token'), 401)
  })

  test('a token that was tampered with gets 401', async () => {
    const [head, claims, signature] = String(token.access_token).split('.')
    const tampered = signature === undefined ? `${token.access_token}x` : `${head}.${claims}x.${signature}`
    expectRefusal(await call('GET', '/api/v1/data/none', undefined, `Bearer ${tampered}`), 401)
  })
})

describe('6: events', () => {
  test('OrderCreated is on the queue when the 201 arrives', async ({ skip }) => {
    if (target.eventsUrl === undefined) return skip('CONTRACT_EVENTS_URL is not set')
    const { orderId } = (await call('POST', '/api/v1/orders', order())).json
    const events = await (await fetch(target.eventsUrl)).text()
    expect(events).toContain('OrderCreated')
    expect(events).toContain(orderId)
  })
})

describe('7: errors', () => {
  test('an invalid customer gets 400 with E001', async ({ skip }) => {
    if (target.unknownCustomer === undefined) return skip('CONTRACT_UNKNOWN_CUSTOMER is not set')
    const answer = await submit({ ...submission(), customerId: target.unknownCustomer })
    expectRefusal(answer, 400)
    expect(textOf(answer)).toContain('E001')
  })

  test('no answer shows a stack trace', async () => {
    expect(textOf(await submit('{'))).not.toMatch(/\bat \S+ \(|node_modules|Exception in/)
  })
})

describe('8: limits', () => {
  test('X-RateLimit-Remaining is on every answer and goes down', async () => {
    const remaining = [await submit(), await submit()].map(({ headers }) =>
      Number(headers.get('x-ratelimit-remaining')),
    )
    expect(remaining[1]).toBeLessThan(remaining[0] ?? 0)
  })

  test('up to here the tests made as many requests as docs/start/sandbox.md says', async ({ skip }) => {
    if (target.countsUrl === undefined) return skip('a sandbox of our own counts them')
    const { rows } = (await (await fetch(target.countsUrl)).json()) as Json
    const total = (what: (row: Json) => boolean, field = 'requests') =>
      rows.filter(what).reduce((sum: number, row: Json) => sum + row[field], 0)
    const posts = ({ endpoint }: Json) => endpoint === 'submit' || endpoint === 'order'
    expect({
      submissions: total(({ endpoint }) => endpoint === 'submit', 'effects'),
      orders: total(({ endpoint }) => endpoint === 'order', 'effects'),
      invalid: total((row) => posts(row) && row.status === 400),
      refused: total(({ endpoint, status }) => endpoint === 'token' && status !== 200),
      calls: total(({ endpoint }) => endpoint !== 'token') - polls,
    }).toEqual({ submissions: 10, orders: 4, invalid: 16, refused: 3, calls: 41 })
  })

  test('a request past the limit gets 429 and X-RateLimit-Remaining: 0', async ({ skip }) => {
    if (!target.exhaust) return skip('CONTRACT_EXHAUST is not 1')
    let answer = await submit()
    for (let sent = 0; sent < 100 && answer.status === 200; sent += 1) answer = await submit()
    expectRefusal(answer, 429)
    expect(answer.headers.get('x-ratelimit-remaining')).toBe('0')
    expect(answer.headers.get('retry-after') ?? '1').toMatch(/^\d+$/)
  })
})
