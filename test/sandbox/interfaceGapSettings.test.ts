import { beforeEach, describe, expect, test } from 'vitest'

import { type ErrorShape, errorShapeNames } from '../../src/sandbox/interfaceGapSettings.ts'
import type { SettingsPatch } from '../../src/sandbox/sandboxSettings.ts'
import { openForFile } from '../support/openForFile.ts'
import { type Json, order, type Reply, setup, submission } from './setup.ts'

/**
 * Settings for behaviour that the interface does not show, set as real services may behave. Other files test the
 * defaults.
 */

const s = openForFile(() => setup({ processingTime: 'constant:0', bodyLimitBytes: 2048 }))
beforeEach(async () => {
  await s.control('DELETE', '/settings')
})

const set = (settings: SettingsPatch) => s.control('PATCH', '/settings', settings)
const submit = (body: unknown = submission(), headers?: Record<string, string>) =>
  s.call('POST', '/api/v1/data', body, headers)
const createOrder = (body: unknown = order()) => s.call('POST', '/api/v1/orders', body)
const read = (id: string) => s.call('GET', `/api/v1/data/${encodeURIComponent(id)}`)
const unauthorized = () => submit(submission(), { authorization: 'Bearer none' })

/** Asks for a token. */
async function askToken(secret = 'sandbox-secret'): Promise<Reply> {
  const form = { grant_type: 'client_credentials', client_id: 'sandbox', client_secret: secret }
  const headers = { authorization: '', 'content-type': 'application/x-www-form-urlencoded' }
  return s.call('POST', '/oauth/token', new URLSearchParams(form).toString(), headers)
}

/** Submits each body in order. @returns whether each was accepted */
async function taken(...bodies: Json[]): Promise<boolean[]> {
  const answers = []
  for (const body of bodies) answers.push(await submit(body))
  for (const { status, text } of answers) expect([200, 400], text).toContain(status)
  return answers.map(({ status }) => status === 200)
}

describe('a token', () => {
  test('may be opaque, is valid over a restart, and not after its revocation', async () => {
    await using own = await setup({ tokenForm: 'opaque' })
    const token = await own.token()
    expect(token).toMatch(/^[\w-]{50,}$/)
    const ask = async (shown: string) =>
      (await own.call('GET', '/api/v1/data/none', undefined, { authorization: `Bearer ${shown}` })).status
    expect([await ask(token), await ask(token.slice(0, -5))]).toEqual([404, 401])
    await own.restart()
    expect(await ask(token)).toBe(404)
    await own.control('POST', '/tokens/revoke')
    expect(await ask(token)).toBe(401)
  })

  test.each<[SettingsPatch, Json]>([
    [{ expiresInForm: 'text' }, { expires_in: '3600', token_type: 'Bearer' }],
    [{ expiresInForm: 'absent', tokenType: 'bearer' }, { token_type: 'bearer' }],
    [{ tokenMoreFields: true }, { expires_in: 3600, scope: 'data orders', ext_expires_in: 7200 }],
  ])('is issued as set: %j', async (settings, fields) => {
    await set(settings)
    const { access_token: _token, ...others } = (await askToken()).json
    expect(others).toMatchObject(fields)
    expect('expires_in' in others).toBe('expires_in' in fields)
  })

  test('ends before its expires_in if tokenHeldSeconds is set', async () => {
    await using standing = await setup({ clock: '2026-01-01T00:00:00Z', tokenHeldSeconds: 100 })
    expect((await standing.call('GET', '/api/v1/data/none')).status).toBe(404)
    await standing.control('POST', '/clock', { advanceSeconds: 99 })
    expect((await standing.call('GET', '/api/v1/data/none')).status).toBe(404)
    await standing.control('POST', '/clock', { advanceSeconds: 1 })
    expect((await standing.call('GET', '/api/v1/data/none')).status).toBe(401)
  })

  test('ends former tokens if newTokenEndsOld is set, also over a restart', async () => {
    await using own = await setup({ newTokenEndsOld: true })
    expect((await own.call('GET', '/api/v1/data/none')).status).toBe(404)
    const [first, second] = [await own.token(), await own.token()]
    const ask = async (token: string) =>
      (await own.call('GET', '/api/v1/data/none', undefined, { authorization: `Bearer ${token}` })).status
    expect([await ask(first), await ask(second)]).toEqual([401, 404])
    await own.restart()
    expect([await ask(first), await ask(second)]).toEqual([401, 404])
  })

  test('is refused for a wrong secret with the set status, in the form of OAuth or of the API', async () => {
    await set({ wrongSecretStatus: 400 })
    const oauth = await askToken('wrong')
    expect([oauth.status, oauth.json.error, oauth.headers.get('www-authenticate')]).toEqual([
      400,
      'invalid_client',
      null,
    ])
    await set({ wrongSecretStatus: 403, tokenErrorShape: 'api', errorShape: 'errorCode' })
    const api = await askToken('wrong')
    expect([api.status, api.json]).toEqual([403, { errorMessage: 'Client id or secret is wrong.' }])
    expect(api.headers.get('cache-control')).toBe('no-store')
  })
})

describe('a refusal', () => {
  const detail = 'Invalid customer: XX was not found.'
  const shapes: [ErrorShape, Json, string][] = [
    ['problem', { type: 'about:blank', title: 'Invalid customer', status: 400, detail, code: 'E001' }, 'problem+json'],
    ['code', { code: 'E001', message: detail }, 'application/json'],
    ['errorCode', { errorCode: 'E001', errorMessage: detail }, 'application/json'],
    ['error', { error: { code: 'E001', message: detail } }, 'application/json'],
    ['errors', { errors: [{ code: 'E001', message: detail }] }, 'application/json'],
    [
      'type',
      { type: 'https://service.example/errors/E001', title: 'Invalid customer', status: 400, detail },
      'problem+json',
    ],
  ]
  test.each(shapes)('has the shape %s', async (errorShape, body, contentType) => {
    await set({ errorShape })
    const answer = await submit(submission({}, 'XX'))
    expect([answer.status, answer.json]).toEqual([400, body])
    expect(answer.headers.get('content-type')).toContain(contentType)
  })

  test.each([
    ['text', `E001: Invalid customer: ${detail}`, 'text/plain'],
    [
      'html',
      `<!doctype html><title>400</title><h1>E001: Invalid customer: ${detail.replace('<', '&lt;')}</h1>\n`,
      'text/html',
    ],
    ['empty', '', 'text/plain'],
  ] as const)('is %s', async (errorShape, text, contentType) => {
    await set({ errorShape })
    const answer = await submit(submission({}, 'XX'))
    expect([answer.status, answer.text]).toEqual([400, text])
    expect(answer.headers.get('content-type')).toContain(contentType)
  })

  test('has a test in this file for every shape', () => {
    expect([...shapes.map(([name]) => name), 'text', 'html', 'empty'].toSorted()).toEqual(errorShapeNames.toSorted())
  })

  test('names each wrong field if its shape is a list', async () => {
    await set({ errorShape: 'errors', invalidCustomerCode: 'E001' })
    const { json } = await submit({ customerId: '', data: { field1: 'none', field2: 'x' } })
    expect(json.errors.map(({ field }: Json) => field)).toEqual(['customerId', 'data.field1'])
  })

  test('of a fault also has the set shape, unless the fault has a body', async () => {
    await set({ errorShape: 'code' })
    await s.control('POST', '/faults', { kind: 'answer', status: 500, code: 'E003', times: 1 })
    expect((await submit()).json).toEqual({ code: 'E003', message: 'A fault of the sandbox gave this answer.' })
    await s.control('POST', '/faults', { kind: 'answer', status: 500, body: { own: 1 }, times: 1 })
    expect((await submit()).json).toEqual({ own: 1 })
  })

  test('with 401 may have its own shape, and a different WWW-Authenticate or none', async () => {
    await set({ errorShape: 'code', unauthorizedShape: 'empty', wwwAuthenticate: 'scheme' })
    const scheme = await unauthorized()
    expect([scheme.status, scheme.text, scheme.headers.get('www-authenticate')]).toEqual([
      401,
      '',
      'Bearer realm="sandbox"',
    ])
    expect((await submit({})).json.message).toContain('The request is not valid')
    await set({ wwwAuthenticate: 'none' })
    expect((await unauthorized()).headers.get('www-authenticate')).toBeNull()
  })

  test('of an address may hide that the address is the reason', async () => {
    await set({ allowedAddresses: ['192.0.2.1'], addressNamed: false })
    const plain = await submit()
    expect([plain.status, plain.text.includes('127.0.0.1'), plain.text.includes('address')]).toEqual([
      401,
      false,
      false,
    ])
    await set({ addressStatus: 403 })
    expect((await submit()).json).toMatchObject({ status: 403, detail: 'Not allowed.' })
  })

  test.each<[SettingsPatch, number, () => Promise<Reply>]>([
    [{ e001Status: 422 }, 422, () => submit(submission({}, 'UNKNOWN'))],
    [{ e001Status: 404 }, 404, () => createOrder({ ...order(), customerId: '00000000-0000-4000-8000-000000000000' })],
    [{ unknownIdStatus: 200 }, 200, () => read('none')],
    [{ oddIdStatus: 400 }, 400, () => read('a b/c')],
    [{ oddIdStatus: 400 }, 404, () => read('a.b-c_d')],
    [{ tooLargeStatus: 400 }, 400, () => submit('x'.repeat(3000))],
    [{ wrongMethodStatus: 404 }, 404, () => s.call('PUT', '/api/v1/data')],
  ])('has the set status: %j gives %i', async (settings, status, send) => {
    await set(settings)
    const answer = await send()
    expect(answer.status).toBe(status)
    expect(answer.json).toHaveProperty('detail')
    expect(answer.headers.get('allow')).toBeNull()
  })

  test('has Retry-After as a date of the service’s clock, or none, if that is set', async () => {
    await set({ down: true, retryAfterForm: 'date', clockSkewSeconds: 7200 })
    const answer = await submit()
    const [retryAfter, date] = ['retry-after', 'date'].map((name) => Date.parse(answer.headers.get(name) ?? ''))
    expect(Math.abs(Number(retryAfter) - Number(date) - 300_000)).toBeLessThanOrEqual(1000)
    await set({ retryAfterForm: 'none' })
    expect((await submit()).headers.get('retry-after')).toBeNull()
  })
})

describe('a record', () => {
  const ten = '😀😀😀😀😀'

  test('may have a customerId of ten characters, ten UTF-16 units or ten bytes, as set', async () => {
    const ids = ['C123456789', `${ten}${ten}`, ten, 'ééééé', 'éééééé'].map((id) => submission({}, id))
    expect(await taken(...ids)).toEqual([true, true, true, true, true])
    await set({ customerIdUnit: 'utf16' })
    expect(await taken(...ids)).toEqual([true, false, true, true, true])
    await set({ customerIdUnit: 'bytes' })
    expect(await taken(...ids)).toEqual([true, false, false, true, false])
  })

  test('must have a field2 that is not empty and no longer than set', async () => {
    const texts = ['', 'abc', '😀😀😀', 'abcd'].map((field2) => submission({ field2 }))
    await set({ field2Empty: false, field2LengthMax: 3 })
    expect(await taken(...texts)).toEqual([false, true, true, false])
  })

  test('must have a field2 of the set pattern', async () => {
    await set({ field2Pattern: '^[A-Z]{2,3}-\\d+$' })
    expect(await taken(...['AB-1', 'AB-', 'ab-1', 'ABC-22'].map((field2) => submission({ field2 })))).toEqual([
      true,
      false,
      false,
      true,
    ])
    await set({ field2Pattern: '^[A-Z]{2}3-\\d+$' })
    expect(await taken(submission({ field2: 'AB-1' }))).toEqual([false])
    await expect(set({ field2Pattern: '[' })).rejects.toThrow('must be a regular expression')
  })

  test('has mapped fields that are read in data or beside it, refused, or ignored, as set', async () => {
    const [good, bad] = [{ order_date: '2026-11-21T09:30:00Z' }, { order_date: 'soon' }]
    const bodies = [
      submission(),
      submission(good),
      submission(bad),
      { ...submission(), ...good },
      { ...submission(), ...bad },
    ]
    expect(await taken(...bodies)).toEqual([true, true, false, true, true])
    await set({ mappedFields: 'top' })
    expect(await taken(...bodies)).toEqual([true, true, true, true, false])
    await set({ mappedFields: 'refused' })
    expect(await taken(...bodies)).toEqual([true, false, false, false, false])
    await set({ mappedFields: 'ignored' })
    expect(await taken(...bodies)).toEqual([true, true, true, true, true])
  })

  test('must have the mapped fields if mappedFieldsRequired is set', async () => {
    const all = { customer_id: 'C1', order_date: '2026-11-21T09:30:00Z', total_amount: 12.3 }
    const { order_date: _date, ...some } = all
    await set({ mappedFieldsRequired: true })
    expect(await taken(submission(), submission(some), submission(all))).toEqual([false, false, true])
    await set({ mappedFields: 'top' })
    expect(await taken({ ...submission(), ...all }, submission(all))).toEqual([true, false])
  })

  test('has an amount as number, text or either, as set, always with two decimals at most', async () => {
    const amounts = ['12.30', '"12.30"', '12.345', '"12.345"', '1e2'].map((amount) =>
      JSON.stringify(submission({ total_amount: 0 })).replace('"total_amount":0', `"total_amount":${amount}`),
    )
    expect(await taken(...amounts)).toEqual([true, true, false, false, false])
    await set({ amountForm: 'number' })
    expect(await taken(...amounts)).toEqual([true, false, false, false, false])
    await set({ amountForm: 'text' })
    expect(await taken(...amounts)).toEqual([false, true, false, false, false])
  })

  test('has a date with or without a fraction, in UTC or with an offset, as set', async () => {
    const times = ['09:30:00Z', '09:30:00.123Z', '09:30:00+00:00', '09:30:00+02:00', '09:30:00']
    const dates = times.map((time) => submission({ order_date: `2026-11-21T${time}` }))
    await set({ dateFractions: false })
    expect(await taken(...dates)).toEqual([true, false, true, false, false])
    await set({ dateOffsets: 'z' })
    expect(await taken(...dates)).toEqual([true, false, false, false, false])
    await set({ dateOffsets: 'any', dateFractions: true })
    expect(await taken(...dates)).toEqual([true, true, true, true, false])
  })

  test.each([
    ['any', [true, true, true, true]],
    ['filled', [false, true, true, true]],
    ['objects', [true, false, true, true]],
    ['sku', [true, false, false, true]],
  ] as const)('that is an order must have the set form of items: %s', async (orderItems, expected) => {
    await set({ orderItems })
    const lists = [[], [JSON.rawJSON('1.50')], [{ name: 'A' }], [{ sku: 'A', quantity: JSON.rawJSON('1.50') }]]
    const answers = []
    for (const items of lists) answers.push((await createOrder(order(items))).status === 201)
    expect(answers).toEqual(expected)
  })
})

describe('a repeated request', () => {
  test('is recognised by the first of the set headers that it has', async () => {
    await set({ idempotency: 'replay', idempotencyHeaders: ['X-Request-Id', 'X-Idempotency-Key'] })
    const send = async (headers: Record<string, string>) => (await submit(submission(), headers)).json.transactionId
    const first = await send({ 'x-idempotency-key': 'k1' })
    expect(await send({ 'X-Idempotency-Key': 'k1' })).toBe(first)
    expect(await send({ 'x-request-id': 'k1' })).toBe(first)
    expect(await send({ 'x-request-id': 'k2', 'x-idempotency-key': 'k1' })).not.toBe(first)
    expect(await send({ 'idempotency-key': 'k1' })).not.toBe(first)
  })

  test.each([
    ['any', [400, 200, 200, 200]],
    ['bare', [400, 200, 400, 200]],
    ['quoted', [400, 400, 200, 400]],
    ['uuid', [400, 400, 400, 200]],
  ] as const)('must have a key of the demanded form: %s', async (idempotencyDemanded, expected) => {
    await set({ idempotencyDemanded, idempotency: 'ignore', idempotencyHeaders: ['X-Request-Id'] })
    const statuses = []
    for (const key of [undefined, 'k-1', '"k-1"', '0b6f5e0e-56a2-4c3f-8d0e-3b6f5a0c9d21']) {
      const headers: Record<string, string> = key === undefined ? {} : { 'x-request-id': key }
      const answer = await submit(submission(), headers)
      if (answer.status === 400) expect(answer.json.detail).toContain('X-Request-Id: must be')
      statuses.push(answer.status)
    }
    expect(statuses).toEqual(expected)
    expect((await createOrder()).status).toBe(400)
  })

  test('must have its own id with ownIds: required', async () => {
    await set({ ownIds: 'required' })
    const [id, orderId] = [`own-${crypto.randomUUID()}`, crypto.randomUUID()]
    expect((await submit()).json.detail).toContain('transactionId')
    expect((await createOrder()).json.detail).toContain('orderId')
    expect((await submit({ ...submission(), transactionId: id })).json.transactionId).toBe(id)
    expect((await createOrder({ ...order(), orderId })).json.orderId).toBe(orderId)
    expect((await submit({ ...submission(), transactionId: id })).json.code).toBe('E002')
  })

  test('may have its own id accepted, ignored or refused, as set', async () => {
    const [id, orderId] = [`own-${Math.random()}`, crypto.randomUUID()]
    await set({ ownIds: 'ignored' })
    expect([(await submit()).status, (await createOrder()).status]).toEqual([200, 201])
    for (let n = 0; n < 2; n += 1) {
      const ignored = await submit({ ...submission(), transactionId: id })
      expect([ignored.status, ignored.json.transactionId === id]).toEqual([200, false])
      const order2 = await createOrder({ ...order(), orderId })
      expect([order2.status, order2.json.orderId === orderId]).toEqual([201, false])
    }
    await set({ ownIds: 'refused' })
    expect((await submit({ ...submission(), transactionId: id })).status).toBe(400)
    expect((await createOrder({ ...order(), orderId })).status).toBe(400)
    expect([(await submit()).status, (await createOrder()).status]).toEqual([200, 201])
  })
})

describe('a transaction', () => {
  test.each([
    ['digits', /^\d{20,}$/],
    ['odd', /^tx\/.*[+ü%?#]/],
  ] as const)('has an id of the form %s, and can be read by it', async (transactionIdForm, pattern) => {
    await set({ transactionIdForm })
    const { transactionId } = (await submit()).json
    expect(transactionId).toMatch(pattern)
    expect((await read(transactionId)).json).toMatchObject({ transactionId, status: 'completed' })
  })

  test('has the status firstStatus in the first half of its processing', async () => {
    await using standing = await setup({
      clock: '2026-01-01T00:00:00Z',
      processingTime: 'constant:10',
      firstStatus: 'accepted',
    })
    const { transactionId } = (await standing.call('POST', '/api/v1/data', submission())).json
    const status = async () => (await standing.call('GET', `/api/v1/data/${transactionId}`)).json.status
    const seen = [await status()]
    for (const advanceSeconds of [4.9, 0.2, 5]) {
      await standing.control('POST', '/clock', { advanceSeconds })
      seen.push(await status())
    }
    expect(seen).toEqual(['accepted', 'accepted', 'pending', 'completed'])
  })

  test('gets 404 until visibleAfterSeconds have passed, and so does an order', async () => {
    await using standing = await setup({ clock: '2026-01-01T00:00:00Z', visibleAfterSeconds: 3 })
    const { transactionId } = (await standing.call('POST', '/api/v1/data', submission())).json
    const { orderId } = (await standing.call('POST', '/api/v1/orders', order())).json
    const statuses = async () => [
      (await standing.call('GET', `/api/v1/data/${transactionId}`)).status,
      (await standing.call('GET', `/api/v1/orders/${orderId}`)).status,
    ]
    const seen = [await statuses()]
    for (const advanceSeconds of [2.9, 0.1]) {
      await standing.control('POST', '/clock', { advanceSeconds })
      seen.push(await statuses())
    }
    expect(seen).toEqual([
      [404, 404],
      [404, 404],
      [200, 200],
    ])
  })

  test.each([
    ['text', expect.any(String)],
    ['list', [expect.objectContaining({ customerId: 'C1' })]],
    ['absent', undefined],
  ] as const)('has a result that is %s', async (resultShape, result) => {
    await set({ resultShape })
    const { json } = await read((await submit()).json.transactionId)
    expect([json.status, json.result]).toEqual(['completed', result])
  })

  test('that failed has no errorCode if errorCodeShown is off', async () => {
    await set({ errorCodeShown: false })
    const { json } = await read((await submit(submission({ field2: 'fail:E003' }))).json.transactionId)
    expect([json.status, 'errorCode' in json]).toEqual(['failed', false])
  })

  test('that is an order may have other statuses, also in its event, and no createdAt', async () => {
    await set({ orderFirstStatus: 'created', orderLastStatus: 'shipped', createdAtOnRead: false })
    const created = (await createOrder()).json
    const { json } = await s.call('GET', `/api/v1/orders/${created.orderId}`)
    expect([created.status, json.status, 'createdAt' in json]).toEqual(['created', 'shipped', false])
    const { rows } = await s.control('GET', '/events')
    expect(rows.at(-1).event.data.status).toBe('created')
  })
})

describe('the limit', () => {
  const remaining = ({ headers }: Reply) => Number(headers.get('x-ratelimit-remaining'))
  const bearer = async () => ({ authorization: `Bearer ${await s.token()}` })
  const few = { rateLimitRequests: 5, rateLimitWindowSeconds: 3600 }
  beforeEach(() => s.control('DELETE', '/ledger'))

  test('counts each token separately, or all requests of an address', async () => {
    const [one, other] = [await bearer(), await bearer()]
    await set({ ...few, rateLimitScope: 'token' })
    expect(remaining(await submit(submission(), one))).toBe(4)
    expect(remaining(await submit(submission(), one))).toBe(3)
    expect(remaining(await submit(submission(), other))).toBe(4)
    await set({ rateLimitScope: 'address' })
    expect(remaining(await submit(submission(), one))).toBe(4)
    expect(remaining(await submit(submission(), other))).toBe(3)
    expect(remaining(await unauthorized())).toBe(2)
  })

  test('does not count polls, and counts token requests, if that is set', async () => {
    await set({ ...few, rateLimitPolls: false, rateLimitTokens: true })
    expect(remaining(await submit())).toBe(4)
    expect(remaining(await read('none'))).toBe(4)
    expect(remaining(await askToken())).toBe(3)
    for (let n = 0; n < 3; n += 1) await submit()
    expect([(await submit()).status, (await read('none')).status]).toEqual([429, 404])
    const refused = await askToken()
    expect([refused.status, refused.headers.has('retry-after')]).toEqual([429, true])
  })

  test('may be separate for orders', async () => {
    await set({ ...few, rateLimitOrders: 'apart' })
    expect([remaining(await submit()), remaining(await createOrder()), remaining(await submit())]).toEqual([4, 4, 3])
  })

  test('counts refused requests if that is set', async () => {
    await using standing = await setup({
      clock: '2026-01-01T00:00:00Z',
      rateLimitRequests: 2,
      rateLimitWindowSeconds: 10,
      rateLimitRefused: true,
    })
    const poll = async (advanceSeconds: number) => {
      await standing.control('POST', '/clock', { advanceSeconds })
      return (await standing.call('GET', '/api/v1/data/none')).status
    }
    expect([await poll(0), await poll(1), await poll(1), await poll(8)]).toEqual([404, 404, 429, 429])
  })

  test.each([
    'sliding',
    'fixed',
  ] as const)('counts only successful requests if that is set (%s)', async (rateLimitKind) => {
    await using standing = await setup({
      clock: '2026-01-01T00:00:00Z',
      rateLimitRequests: 2,
      rateLimitFailures: false,
      rateLimitKind,
    })
    const poll = () => standing.call('GET', '/api/v1/data/none')
    const send = () => standing.call('POST', '/api/v1/data', submission())
    const answers = [await poll(), await send(), await poll(), await send(), await poll()]
    expect(answers.map(({ status }) => status)).toEqual([404, 200, 404, 200, 429])
    expect(answers.map(remaining)).toEqual([2, 1, 1, 0, 0])
    await standing.restart()
    expect((await send()).status).toBe(429)
  })

  test('is combined with a limit per second if that is set', async () => {
    await using standing = await setup({
      clock: '2026-01-01T00:00:00Z',
      rateLimitRequests: 3,
      rateLimitPerSecond: 2,
    })
    const poll = () => standing.call('GET', '/api/v1/data/none')
    const first = [await poll(), await poll(), await poll()]
    expect(first.map(({ status }) => status)).toEqual([404, 404, 429])
    expect([first.map(remaining), first[2]?.headers.get('retry-after')]).toEqual([[2, 1, 1], '1'])
    await standing.control('POST', '/clock', { advanceSeconds: 1 })
    const second = [await poll(), await poll()]
    expect(second.map(({ status }) => status)).toEqual([404, 429])
    expect(second[1]?.headers.get('retry-after')).toBe('59')
  })

  test.each([
    ['double', [8, 6]],
    ['full', [5, 5]],
    ['zero', [0, 0]],
  ] as const)('has a wrong header if that is set: %s', async (remainingValue, expected) => {
    await set({ ...few, remainingValue })
    expect([remaining(await submit()), remaining(await submit())]).toEqual(expected)
  })

  test('resets with each window of the clock if windows are fixed', async () => {
    await using standing = await setup({
      clock: '2026-01-01T00:00:50Z',
      rateLimitRequests: 2,
      rateLimitWindowSeconds: 60,
      rateLimitKind: 'fixed',
    })
    const poll = () => standing.call('GET', '/api/v1/data/none')
    const first = [await poll(), await poll(), await poll()]
    expect(first.map(({ status }) => status)).toEqual([404, 404, 429])
    expect(first.map(remaining)).toEqual([1, 0, 0])
    expect(first[2]?.headers.get('retry-after')).toBe('10')
    await standing.restart()
    expect((await poll()).status).toBe(429)
    await standing.control('POST', '/clock', { advanceSeconds: 10 })
    expect([remaining(await poll()), remaining(await poll()), (await poll()).status]).toEqual([1, 0, 429])
  })

  test('is sent only with answers of the API, or with none, if that is set', async () => {
    const told = async () =>
      [await submit(), await askToken()].map(({ headers }) => headers.has('x-ratelimit-remaining'))
    await set({ remainingHeader: 'api' })
    expect(await told()).toEqual([true, false])
    await set({ remainingHeader: 'none' })
    expect(await told()).toEqual([false, false])
  })
})

describe('answers', () => {
  test('are compressed never, if the client accepts it, or always', async () => {
    const encodings = async () => {
      const answers = [await submit(submission(), { 'accept-encoding': 'identity' }), await submit()]
      for (const { json } of answers) expect(json.status).toBe('accepted')
      return answers.map(({ headers }) => headers.get('content-encoding'))
    }
    expect(await encodings()).toEqual([null, null])
    await set({ compression: 'asked' })
    expect(await encodings()).toEqual([null, 'gzip'])
    await set({ compression: 'always' })
    expect(await encodings()).toEqual(['gzip', 'gzip'])
  })

  test('have times of a skewed clock, while tokens and processing use the true time', async () => {
    await set({ clockSkewSeconds: -1800 })
    const { headers, json } = await submit()
    const agoMs = [headers.get('date'), json.timestamp].map((time) => Date.now() - Date.parse(String(time)))
    for (const ms of agoMs) expect(Math.abs(ms - 1_800_000)).toBeLessThan(20_000)
    expect((await read(json.transactionId)).json.status).toBe('completed')
  })

  test('keep the connection open for the set time, or close it', async () => {
    const connection = async () => {
      const { headers } = await submit()
      return [headers.get('connection'), headers.get('keep-alive')]
    }
    await set({ keepAliveSeconds: 5 })
    expect(await connection()).toEqual(['keep-alive', 'timeout=5'])
    await set({ keepAliveSeconds: 0 })
    expect((await connection())[0]).toBe('close')
  })
})
