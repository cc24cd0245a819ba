import { request } from 'node:http'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Json, order, type Setup, setup, submission } from './setup.ts'

let s: Setup
beforeAll(async () => {
  s = await setup({ processingTime: 'constant:0' })
})
beforeEach(async () => {
  await s.control('DELETE', '/faults')
  await s.control('DELETE', '/ledger')
})
afterAll(() => s[Symbol.asyncDispose]())

const submit = (body: unknown = submission()) => s.call('POST', '/api/v1/data', body)
const fault = (spec: Record<string, unknown>) => s.control('POST', '/faults', spec)
const ledger = async (): Promise<Json[]> =>
  (await s.control('GET', '/ledger')).rows.filter((row: Json) => row.endpoint !== 'token')

test('a status and a code are answered for n requests, and then no longer', async () => {
  await fault({ kind: 'answer', endpoint: 'submit', status: 500, code: 'E003', times: 2 })
  const answers = [await submit(), await submit(), await submit()]
  expect(answers.map(({ status }) => status)).toEqual([500, 500, 200])
  expect(answers[0]?.json).toMatchObject({ status: 500, code: 'E003' })
  expect(answers[0]?.headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
  expect((await ledger()).map((row) => row.transactionId !== null)).toEqual([false, false, true])
})

test('401 once, then as always', async () => {
  await fault({ kind: 'answer', status: 401, times: 1 })
  expect([(await submit()).status, (await submit()).status]).toEqual([401, 200])
})

test('an answer after applying hides that it was applied', async () => {
  await fault({ kind: 'answer', endpoint: 'submit', status: 500, when: 'after', times: 1 })
  expect((await submit()).status).toBe(500)
  expect((await ledger())[0]).toMatchObject({ status: 500, transactionId: expect.any(String) })
})

test('an answer may have any body, type and headers', async () => {
  const headers = { 'retry-after': '7' }
  await fault({ kind: 'answer', status: 429, body: { error: { code: 'E009' } }, headers, times: 1 })
  const answer = await submit()
  expect({ status: answer.status, json: answer.json }).toEqual({ status: 429, json: { error: { code: 'E009' } } })
  expect(answer.headers.get('retry-after')).toBe('7')
  await fault({ kind: 'answer', status: 502, body: '<html>', contentType: 'text/html', times: 1 })
  const html = await submit()
  expect({ text: html.text, type: html.headers.get('content-type') }).toEqual({ text: '<html>', type: 'text/html' })
})

test('a drop before applying stores nothing and answers nothing', async () => {
  await fault({ kind: 'drop', when: 'before', times: 1 })
  await expect(submit()).rejects.toThrow()
  expect(await ledger()).toMatchObject([{ dropped: true, status: null, transactionId: null }])
  expect((await s.control('GET', '/transactions')).rows.length).toBe(
    (await s.database.pool.query('select 1 from sandbox.transactions')).rowCount,
  )
})

test('a drop after applying stores and answers nothing', async () => {
  await fault({ kind: 'drop', when: 'after', endpoint: ['submit', 'order'], times: 2 })
  await expect(submit()).rejects.toThrow()
  await expect(s.call('POST', '/api/v1/orders', order())).rejects.toThrow()
  const rows = await ledger()
  expect(rows).toMatchObject([
    { dropped: true, status: null, transactionId: expect.any(String) },
    { dropped: true, status: null, orderId: expect.any(String) },
  ])
  expect((await s.call('GET', `/api/v1/data/${rows[0].transactionId}`)).status).toBe(200)
  expect((await s.call('GET', `/api/v1/orders/${rows[1].orderId}`)).status).toBe(200)
})

test('after a drop after applying, the same idempotency key is E002', async () => {
  await fault({ kind: 'drop', when: 'after', times: 1 })
  const key = { 'idempotency-key': 'dropped' }
  await expect(s.call('POST', '/api/v1/data', submission(), key)).rejects.toThrow()
  expect((await s.call('POST', '/api/v1/data', submission(), key)).json.code).toBe('E002')
})

test('a delay after applying is seen in the ledger before the answer comes', async () => {
  await fault({ kind: 'delay', delayMs: 60_000, when: 'after', times: 1 })
  const gone = new AbortController()
  const call = fetch(`${s.sandbox.url}/api/v1/data`, {
    method: 'POST',
    body: JSON.stringify(submission()),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${await s.token()}` },
    signal: gone.signal,
  })
  await expect.poll(ledger).toMatchObject([{ status: 200, transactionId: expect.any(String) }])
  gone.abort()
  await expect(call).rejects.toThrow()
})

test('a delay before applying holds the request back, and then applies it', async () => {
  await fault({ kind: 'delay', delayMs: 150, when: 'before', times: 1 })
  const started = performance.now()
  expect((await submit()).status).toBe(200)
  expect(performance.now() - started).toBeGreaterThanOrEqual(149)
})

test('garbage is not JSON, though it says so', async () => {
  await fault({ kind: 'garbage', times: 1 })
  const answer = await submit()
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
  expect(answer.json).toBeUndefined()
  expect((await ledger())[0].transactionId).not.toBeNull()
})

test('an oversized body is as large as it was told to be', async () => {
  await fault({ kind: 'oversized', bytes: 3_000_000, times: 1 })
  expect((await submit()).text.length).toBeGreaterThan(3_000_000)
})

test('gzip comes to a client that did not ask for it, and may be a bomb', async () => {
  await fault({ kind: 'gzip', bytes: 5_000_000, times: 1 })
  const { headers, body } = await raw('/api/v1/data', JSON.stringify(submission()))
  expect(headers['content-encoding']).toBe('gzip')
  expect(body.length).toBeLessThan(50_000)
})

test('a redirect is answered with its location, and nothing is applied', async () => {
  await fault({ kind: 'redirect', location: 'http://127.0.0.1:1/elsewhere', times: 1 })
  const answer = await submit()
  expect({ status: answer.status, location: answer.headers.get('location') }).toEqual({
    status: 307,
    location: 'http://127.0.0.1:1/elsewhere',
  })
  expect((await ledger())[0].transactionId).toBeNull()
})

test('a body drips byte by byte, and is whole in the end', async () => {
  await fault({ kind: 'drip', intervalMs: 1, times: 1 })
  const { body, chunks } = await raw('/api/v1/data', JSON.stringify(submission()))
  expect(JSON.parse(body.toString())).toMatchObject({ status: 'accepted' })
  expect(chunks).toBeGreaterThan(10)
})

test("an id is missing, a status unknown, an id another's", async () => {
  await fault({ kind: 'missing_id', times: 2 })
  expect((await submit()).json).not.toHaveProperty('transactionId')
  expect((await s.call('POST', '/api/v1/orders', order())).json).not.toHaveProperty('orderId')
  const { transactionId } = (await submit()).json
  await fault({ kind: 'unknown_status', endpoint: 'status', value: 'paused', times: 1 })
  expect((await s.call('GET', `/api/v1/data/${transactionId}`)).json).toMatchObject({ transactionId, status: 'paused' })
  await fault({ kind: 'wrong_id', endpoint: 'status', times: 1 })
  const wrong = (await s.call('GET', `/api/v1/data/${transactionId}`)).json
  expect(wrong).toMatchObject({ status: 'completed' })
  expect(wrong.transactionId).not.toBe(transactionId)
})

test('a fault keeps to its endpoint, the token endpoint included', async () => {
  await fault({ kind: 'answer', endpoint: 'token', status: 500, body: { error: 'server_error' }, times: 1 })
  expect((await submit()).status).toBe(200)
  expect(await s.token()).toBe('undefined')
  expect(await s.token()).toMatch(/^ey/)
})

test('a fault may keep to bodies that contain a text', async () => {
  await fault({ kind: 'answer', status: 400, code: 'E001', bodyContains: '"C7"' })
  expect((await submit()).status).toBe(200)
  expect((await submit(submission({}, 'C7'))).status).toBe(400)
})

test('a fault applies to a share of the requests', async () => {
  await fault({ kind: 'answer', status: 500, share: 0.3 })
  const answers = await Promise.all(Array.from({ length: 300 }, () => submit()))
  const failed = answers.filter(({ status }) => status === 500).length
  expect(failed).toBeGreaterThan(50)
  expect(failed).toBeLessThan(130)
})

test('what is left of a fault survives a restart and an emptied ledger', async () => {
  await fault({ kind: 'answer', status: 500, times: 3 })
  await submit()
  await s.restart()
  expect((await s.control('GET', '/faults')).rows).toMatchObject([{ left: 2, hits: 1 }])
  await submit()
  await s.control('DELETE', '/ledger')
  await s.restart()
  expect((await s.control('GET', '/faults')).rows).toMatchObject([{ left: 1 }])
  expect([(await submit()).status, (await submit()).status]).toEqual([500, 200])
})

test('faults can be switched off one by one', async () => {
  const { id } = await fault({ kind: 'answer', status: 500 })
  await fault({ kind: 'answer', status: 502 })
  await s.control('DELETE', `/faults/${id}`)
  expect((await submit()).status).toBe(502)
  await expect(s.control('DELETE', `/faults/${id}`)).rejects.toThrow('There is no fault with this id')
})

test.each<[Record<string, unknown>, string]>([
  [{ kind: 'explode' }, 'kind'],
  [{ kind: 'answer' }, 'status'],
  [{ kind: 'delay' }, 'delayMs'],
  [{ kind: 'drop', endpoint: 'orders' }, 'endpoint'],
  [{ kind: 'drop', sometimes: true }, 'sometimes'],
  [{ kind: 'answer', status: 429, headers: { 'retry-after': '1\n' } }, 'headers'],
  [{ kind: 'answer', status: 429, headers: { 'retry after': '1' } }, 'headers'],
  [
    { kind: 'answer', status: 200, headers: { 'Transfer-Encoding': 'chunked' } },
    'must not have content-length or transfer-encoding',
  ],
  [
    { kind: 'answer', status: 200, headers: { 'content-length': '5' } },
    'must not have content-length or transfer-encoding',
  ],
  [{ kind: 'answer', status: 429, contentType: 'text/\u2028' }, 'contentType'],
  [{ kind: 'redirect', location: 'http://elsewhere/\r\n' }, 'location'],
])('%j is no fault, and the answer says why', async (spec, word) => {
  await expect(fault(spec)).rejects.toThrow(word)
})

/** A request whose answer is neither decompressed nor gathered, as `fetch` would. */
async function raw(
  path: string,
  body: string,
): Promise<{ headers: NodeJS.Dict<string | string[]>; body: Buffer; chunks: number }> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${await s.token()}` }
  return new Promise((resolve, reject) => {
    const sent = request(s.sandbox.url + path, { method: 'POST', headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ headers: response.headers, body: Buffer.concat(chunks), chunks: chunks.length }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
