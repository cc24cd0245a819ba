import { request } from 'node:http'
import { beforeEach, expect, test } from 'vitest'
import { openForFile } from '../../support/openForFile.ts'
import { type Json, order, setup, submission } from '../setup.ts'

const s = openForFile(() => setup({ processingTime: 'constant:0' }))
beforeEach(async () => {
  await s.control('DELETE', '/faults')
  await s.control('DELETE', '/ledger')
})

const submit = (body: unknown = submission()) => s.call('POST', '/api/v1/data', body)
const fault = (spec: Record<string, unknown>) => s.control('POST', '/faults', spec)
const ledger = async (): Promise<Json[]> =>
  (await s.control('GET', '/ledger')).rows.filter((row: Json) => row.endpoint !== 'token')

test('a fault answers with its status and code for the given number of requests', async () => {
  await fault({ kind: 'answer', endpoint: 'submit', status: 500, code: 'E003', times: 2 })
  const answers = [await submit(), await submit(), await submit()]
  expect(answers.map(({ status }) => status)).toEqual([500, 500, 200])
  expect(answers[0]?.json).toMatchObject({ status: 500, code: 'E003' })
  expect(answers[0]?.headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
  expect((await ledger()).map((row) => row.transactionId !== null)).toEqual([false, false, true])
})

test('a fault with times 1 answers one request with 401, and then no more', async () => {
  await fault({ kind: 'answer', status: 401, times: 1 })
  expect([(await submit()).status, (await submit()).status]).toEqual([401, 200])
})

test('a fault answer after applying replaces the answer to a stored record', async () => {
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

test('during a delay after applying, the ledger already has the request', async () => {
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

test('a delay before applying delays the request, and then applies it', async () => {
  await fault({ kind: 'delay', delayMs: 150, when: 'before', times: 1 })
  const started = performance.now()
  expect((await submit()).status).toBe(200)
  expect(performance.now() - started).toBeGreaterThanOrEqual(149)
})

test('garbage is not JSON, but has a JSON content type', async () => {
  await fault({ kind: 'garbage', times: 1 })
  const answer = await submit()
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
  expect(answer.json).toBeUndefined()
  expect((await ledger())[0].transactionId).not.toBeNull()
})

test('an oversized body has the given size', async () => {
  await fault({ kind: 'oversized', bytes: 3_000_000, times: 1 })
  expect((await submit()).text.length).toBeGreaterThan(3_000_000)
})

test('a gzip fault compresses a large body for a client that did not ask for gzip', async () => {
  await fault({ kind: 'gzip', bytes: 5_000_000, times: 1 })
  const { headers, body } = await raw('/api/v1/data', JSON.stringify(submission()))
  expect(headers['content-encoding']).toBe('gzip')
  expect(body.length).toBeLessThan(50_000)
})

test('a redirect fault answers with its location and applies nothing', async () => {
  await fault({ kind: 'redirect', location: 'http://127.0.0.1:1/elsewhere', times: 1 })
  const answer = await submit()
  expect({ status: answer.status, location: answer.headers.get('location') }).toEqual({
    status: 307,
    location: 'http://127.0.0.1:1/elsewhere',
  })
  expect((await ledger())[0].transactionId).toBeNull()
})

test('a drip fault sends the whole body in small pieces', async () => {
  await fault({ kind: 'drip', intervalMs: 1, times: 1 })
  const { body, chunks } = await raw('/api/v1/data', JSON.stringify(submission()))
  expect(JSON.parse(body.toString())).toMatchObject({ status: 'accepted' })
  expect(chunks).toBeGreaterThan(10)
})

test('faults remove the id, give an unknown status, or give a wrong id', async () => {
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

test('a fault affects only its endpoint, which may be the token endpoint', async () => {
  await fault({ kind: 'answer', endpoint: 'token', status: 500, body: { error: 'server_error' }, times: 1 })
  expect((await submit()).status).toBe(200)
  expect(await s.token()).toBe('undefined')
  expect(await s.token()).toMatch(/^ey/)
})

test('a fault may affect only bodies that contain a text', async () => {
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

test('the remaining count of a fault survives a restart and deleting the ledger', async () => {
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

test('a fault can be removed by its id', async () => {
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
])('%j is not a valid fault, and the answer says why', async (spec, word) => {
  await expect(fault(spec)).rejects.toThrow(word)
})

/** Sends a request. Unlike `fetch`, it does not decompress the answer, and counts its chunks. */
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
