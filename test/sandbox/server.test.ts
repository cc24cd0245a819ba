import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { json } from 'node:stream/consumers'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { openForFile } from '../support/openForFile.ts'
import { until } from '../support/until.ts'
import { type Json, order, type Reply, setup, submission } from './setup.ts'

const anyText = expect.any(String)
const s = openForFile(() => setup({ processingTime: 'constant:0', bodyLimitBytes: 2048 }))
beforeEach(async () => {
  await s.control('DELETE', '/settings')
  await s.control('DELETE', '/ledger')
})

const submit = (body: unknown = submission(), headers?: Record<string, string>) =>
  s.call('POST', '/api/v1/data', body, headers)
const ledger = async (): Promise<Json[]> => (await s.control('GET', '/ledger')).rows

test('every error is a problem document with the remaining requests, and no stack trace', async () => {
  const unauthorized = { authorization: 'Bearer nothing' }
  await s.control('PATCH', '/settings', { rateLimitRequests: 100 })
  const answers = [
    await submit(submission({ field1: 'none' })),
    await submit('not json'),
    await submit(submission(), unauthorized),
    await submit(submission({}, 'UNKNOWN')),
    await submit('x'.repeat(3000)),
    await submit(submission(), { 'content-type': 'text/plain' }),
    await s.call('GET', '/api/v1/data/none'),
    await s.call('GET', '/api/v1/data'),
    await s.call('DELETE', '/api/v1/orders'),
    await s.call('GET', '/api/v2/data/1'),
    await s.call('GET', '/api/v1/data/%'),
  ]
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 401, 400, 413, 415, 404, 405, 405, 404, 400])
  for (const { status, headers, json, text } of answers) {
    expect(headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
    expect(headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
    expect(json).toMatchObject({ type: anyText, title: anyText, status, detail: anyText })
    expect(text).not.toMatch(/\.[tj]s|node_modules|at .*\(/)
  }
})

test('an internal error gets 500 without its message', async () => {
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  // The end 'infinity' makes only the query for this transaction fail in the database.
  await s.database.pool.query(
    "insert into sandbox.transactions (client, id, customer_id, accepted_at, done_at, outcome) values ('sandbox', 'broken', 'C1', now(), 'infinity', 'completed')",
  )
  try {
    const answer = await s.call('GET', '/api/v1/data/broken')
    expect(answer.status).toBe(500)
    expect(answer.headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
    expect(await ledger()).toMatchObject([{ endpoint: 'status', status: 500 }])
    expect(answer.json.detail).not.toContain('infinity')
    expect(answer.text).not.toMatch(/\.[tj]s|node_modules|infinity/)
    expect(stderr.mock.calls.join()).toContain('infinity')
  } finally {
    stderr.mockRestore()
    await s.database.pool.query("delete from sandbox.transactions where id = 'broken'")
  }
})

test('the ledger has every request in order, with microseconds, before its answer', async () => {
  const started = Date.now()
  const body = '{"customerId":"C1", "data":{"field1":"value1","field2":"ü","total_amount":1234.50}}'
  const { json } = await submit(body, { 'idempotency-key': 'key 1' })
  await s.call('GET', `/api/v1/data/${json.transactionId}?x=1`)
  await s.call('GET', '/elsewhere')
  const created = await s.call('POST', '/api/v1/orders', order())
  const rows = await ledger()
  expect(rows.map(({ endpoint, method, path, status }) => [endpoint, method, path, status])).toEqual([
    ['submit', 'POST', '/api/v1/data', 200],
    ['status', 'GET', `/api/v1/data/${json.transactionId}`, 200],
    ['other', 'GET', '/elsewhere', 404],
    ['order', 'POST', '/api/v1/orders', 201],
  ])
  expect(rows[0]).toEqual({
    sequence: 1,
    arrivedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    endpoint: 'submit',
    method: 'POST',
    path: '/api/v1/data',
    client: 'sandbox',
    address: '127.0.0.1',
    idempotencyKey: 'key 1',
    body,
    status: 200,
    dropped: false,
    counted: true,
    faultId: null,
    transactionId: json.transactionId,
    orderId: null,
  })
  expect(Math.abs(Date.parse(rows[0].arrivedAt) - started)).toBeLessThan(5000)
  expect(rows[3]).toMatchObject({ orderId: created.json.orderId, transactionId: null })
  expect((await s.control('GET', '/ledger?since=2&limit=1')).rows).toHaveLength(1)
})

test('a thousand requests at once make a thousand ledger rows and as many effects', async () => {
  const answers = await Promise.all(
    Array.from({ length: 1000 }, (_, n) => submit(submission(), { 'idempotency-key': `n${n}` })),
  )
  const { rows } = await s.control('GET', '/ledger?limit=5000')
  const applied = rows.filter((row: Json) => row.transactionId !== null)
  expect(new Set(applied.map((row: Json) => row.idempotencyKey)).size).toBe(1000)
  expect(new Set(applied.map((row: Json) => row.transactionId))).toEqual(
    new Set(answers.map(({ json }) => json.transactionId)),
  )
})

test('a request with a NUL character does not affect a concurrent one', async () => {
  const [bad, good] = await Promise.all([submit('{"\u0000'), submit()])
  expect([bad.status, good.status]).toEqual([400, 200])
})

test('if Postgres refuses one request, only that request fails', async () => {
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const refused = crypto.randomUUID()
  await s.database.pool.query(`alter table sandbox.orders add constraint refused check (id <> '${refused}')`)
  const answers = await Promise.all([
    s.call('POST', '/api/v1/orders', { ...order(), orderId: refused }),
    ...Array.from({ length: 10 }, () => s.call('POST', '/api/v1/orders', order())),
  ])
  await s.database.pool.query('alter table sandbox.orders drop constraint refused')
  stderr.mockRestore()
  expect(answers.map(({ status }) => status)).toEqual([500, ...Array(10).fill(201)])
  const rows = await ledger()
  expect(rows).toHaveLength(11)
  expect(rows.filter(({ status, orderId }) => status === 500 && orderId === null)).toHaveLength(1)
})

test('past the limit requests get 429 with Retry-After, also over a restart, until the window has passed', async () => {
  await s.control('PATCH', '/settings', { rateLimitRequests: 5, rateLimitWindowSeconds: 40 })
  const answers = []
  for (let n = 0; n < 6; n += 1) answers.push(await submit())
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429])
  expect(answers.map(({ headers }) => headers.get('x-ratelimit-remaining'))).toEqual(['4', '3', '2', '1', '0', '0'])
  expect(answers.at(-1)?.headers.get('retry-after')).toMatch(/^\d\d$/)
  await s.restart()
  expect((await submit()).status).toBe(429)
  await s.control('POST', '/clock', { advanceSeconds: 40 })
  expect((await submit()).status).toBe(200)
  expect(await s.control('GET', '/rate')).toMatchObject({ windowSeconds: 40, maxAdmitted: 5 })
  await s.control('DELETE', '/ledger?everything=true') // resets the clock
})

test('under any load, no window has more admitted requests than the limit', async () => {
  await s.control('PATCH', '/settings', { rateLimitRequests: 20, rateLimitWindowSeconds: 0.2 })
  const token = await s.token() // a new token, because verifying it lets later requests overtake
  const authorization = { authorization: `Bearer ${token}` }
  const rushFor = async (ms: number) => {
    const end = performance.now() + ms
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        while (performance.now() < end) await submit(submission(), authorization)
      }),
    )
    return s.control('GET', '/rate')
  }
  await until(
    () => rushFor(1_000), // on a busy machine not every second reaches the limit
    ({ maxAdmitted, maxArrived }) => maxAdmitted >= 20 && maxArrived > 20,
  )
  expect((await rushFor(500)).maxAdmitted).toBe(20)
})

test('requests without a valid token count by their address, and token requests do not count', async () => {
  await s.control('PATCH', '/settings', { rateLimitRequests: 2 })
  const strange = () => submit(submission(), { authorization: 'Bearer strange' })
  expect([(await strange()).status, (await strange()).status, (await strange()).status]).toEqual([401, 401, 429])
  for (let n = 0; n < 5; n += 1) expect(await s.token()).toMatch(/^ey/)
  expect((await submit()).status).toBe(200)
})

test('settings can be changed, are validated, survive a restart and can be reset', async () => {
  await s.control('PATCH', '/settings', { idempotency: 'ignore', processingTime: 'exponential:20' })
  await s.restart()
  expect(s.sandbox.changedSettings).toEqual(['idempotency', 'processingTime'])
  expect(await s.control('GET', '/settings')).toMatchObject({ idempotency: 'ignore', processingTime: 'exponential:20' })
  await expect(s.control('PATCH', '/settings', { processingTime: 'soon' })).rejects.toThrow('must be constant:SECONDS')
  await expect(s.control('PATCH', '/settings', { speed: 1 })).rejects.toThrow('speed')
  expect(await s.control('DELETE', '/settings')).toMatchObject({ idempotency: 'e002', changed: [] })
})

test('the ledger can be deleted separately, or everything', async () => {
  const { json } = await submit()
  await s.call('POST', '/api/v1/orders', order())
  await s.control('DELETE', '/ledger')
  expect(await ledger()).toEqual([])
  expect((await s.call('GET', `/api/v1/data/${json.transactionId}`)).status).toBe(200)
  await s.control('DELETE', '/ledger?everything=true')
  expect((await s.call('GET', `/api/v1/data/${json.transactionId}`)).status).toBe(404)
  expect((await s.control('GET', '/orders')).rows).toEqual([])
  expect((await s.control('GET', '/events')).rows).toEqual([])
})

test('counts give the numbers of requests and of effects', async () => {
  await submit()
  await submit(submission({}, 'X'))
  expect((await s.control('GET', '/counts')).rows).toEqual([
    { endpoint: 'submit', status: 200, dropped: false, requests: 1, effects: 1 },
    { endpoint: 'submit', status: 400, dropped: false, requests: 1, effects: 0 },
  ])
})

test('a request that is not HTTP gets 400 without a stack trace', async () => {
  const socket = connect(s.sandbox.port, '127.0.0.1')
  socket.end('HELLO\r\n\r\n')
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  await once(socket, 'close')
  expect(answer).toMatch(/^HTTP\/1.1 400/)
  expect(answer).not.toMatch(/at .*\(|node_modules/)
})

test('the sandbox survives the loss of its database connections', async () => {
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  expect((await submit()).status).toBe(200)
  // Waits until the sessions are gone, because a later loss would give the next test a 503.
  await s.database.pool.query(
    "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'outboxd sandbox' and datname = current_database()",
  )
  await expect.poll(async () => (await submit().catch(() => ({ status: 0 }))).status).toBe(200)
  stderr.mockRestore()
})

test.each([
  ['/api/v1/data', 'authorization', 'detail'],
  ['/api/v1/data', 'content-type', 'detail'],
  ['/api/v1/orders', 'idempotency-key', 'detail'],
  ['/oauth/token', 'content-type', 'error_description'],
])('a request to %s with %s twice gets 400', async (path, name, words) => {
  const values = {
    authorization: `Bearer ${await s.token()}`,
    'content-type': 'application/json',
    'idempotency-key': 'k',
  }
  const headers = { ...values, [name]: [values[name as keyof typeof values], 'another'] }
  const asked = request(s.sandbox.url + path, { method: 'POST', headers }).end('{}')
  const [answer] = await once(asked, 'response')
  expect(answer.statusCode).toBe(400)
  expect(((await json(answer)) as Json)[words]).toBe(`The header ${name} came more than once.`)
})

describe('strangers', () => {
  const s = openForFile(() => setup({ requestTimeoutSeconds: 1, connectionsMax: 50 }))
  beforeEach(async () => {
    await s.control('DELETE', '/settings')
    await s.control('DELETE', '/ledger?everything=true')
  })

  const statuses = (answers: readonly Reply[]) => answers.map(({ status }) => status)

  async function ask(secret: string): Promise<Reply> {
    const form = { grant_type: 'client_credentials', client_id: 'sandbox', client_secret: secret }
    const headers = { 'content-type': 'application/x-www-form-urlencoded', authorization: '' }
    return s.call('POST', '/oauth/token', new URLSearchParams(form).toString(), headers)
  }

  describe('without credentials', () => {
    test('requests of a page of another site are refused, and do not count against the limit', async () => {
      await s.call('GET', '/api/v1/data/none') // gets a token first
      await s.control('DELETE', '/ledger')
      await s.control('PATCH', '/settings', { rateLimitTokens: true, rateLimitRequests: 2 })
      const { url } = s.sandbox
      const page = { origin: 'http://evil.example', authorization: '' }
      const form = { ...page, 'content-type': 'application/x-www-form-urlencoded' }
      const image = { authorization: '', 'sec-fetch-site': 'cross-site' }
      for (let times = 0; times < 4; times += 1) {
        const answers = [
          await s.call('POST', '/oauth/token', 'client_id=sandbox&client_secret=wrong', form),
          await s.call('POST', '/oauth/token', 'client_id=sandbox&client_secret=wrong', { ...form, origin: 'null' }),
          await s.call('POST', '/api/v1/data', submission(), page),
          await s.call('GET', '/api/v1/data/x', undefined, image),
        ]
        expect(statuses(answers)).toEqual([403, 403, 403, 403])
      }
      const { rows }: Json = await s.control('GET', '/ledger')
      expect(rows.map(({ counted }: Json) => counted)).not.toContain(true)
      expect((await s.call('POST', '/oauth/token', 'x', { ...form, origin: url })).status).toBe(400)
      expect((await ask('sandbox-secret')).status).toBe(200)
    })
  })

  describe('connections', () => {
    const open = () => connect(s.sandbox.port, '127.0.0.1')

    test('a request whose body does not come gets 408 after the request timeout', async () => {
      const socket = open()
      socket.write('POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf of it')
      const answer: Buffer[] = []
      socket.on('data', (part: Buffer) => answer.push(part))
      await once(socket, 'close')
      expect(Buffer.concat(answer).toString()).toMatch(/^HTTP\/1.1 408 /)
    })

    test('a silent connection is closed', async () => {
      const silent = open().resume()
      await once(silent, 'close')
    })

    test('connections beyond connectionsMax are closed, and others go on', async () => {
      // An accepted connection gets a 408 at the end. One beyond the limit gets nothing.
      const answered = await Promise.all(
        Array.from({ length: 60 }, async () => {
          const socket = open().on('error', () => {})
          let isAnswered = false
          socket.on('data', () => {
            isAnswered = true
          })
          await new Promise((resolve) => socket.on('close', resolve))
          return isAnswered
        }),
      )
      expect(new Set(answered)).toEqual(new Set([true, false]))
      await expect.poll(async () => (await ask('sandbox-secret').catch(() => ({ status: 0 }))).status).toBe(200)
    })
  })
})
