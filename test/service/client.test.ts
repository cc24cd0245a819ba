import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { findEarliestExpiryEpochMs } from '../../src/pem.ts'
import { readRetryAfterMs } from '../../src/service/client.ts'
import { readPauseFromTokenAnswer } from '../../src/service/readAnswer.ts'
import { type Fault, startFaultProxy } from '../support/faultProxy.ts'
import {
  accessToken,
  clientFor,
  json,
  later,
  permittedClientFor,
  responded,
  secret,
  startServer,
  statusRequest,
  submitRequest,
} from './support.ts'

const tls = (name: string) => readFileSync(join(import.meta.dirname, 'tls', name), 'utf8')
const accepted = { transactionId: 'tx-1', status: 'accepted', timestamp: '2026-11-21T00:00:00Z' }

describe('the id at the end of the Location header', () => {
  test.each([
    ['/api/v1/data/tx-1', 'tx-1'],
    ['tx-1', 'tx-1'],
    ['/status/tx%201/?a=b#c', 'tx 1'],
    ['{url}/partner/api/v1/data/0193C1B2-0000-7000-8000-00000000000A', '0193C1B2-0000-7000-8000-00000000000A'],
    ['https://elsewhere.example/api/v1/data/tx-1', null],
    ['/login', null],
    ['/partner/api/v1', null],
    ['/api/v1/data/%zz1', null],
    [`/${encodeURIComponent(secret)}1`, null],
    [`/${'1'.repeat(300)}`, null],
    ['http://[', null],
    ['', null],
  ])('%s: %s', async (location, id) => {
    const { url } = await startServer((_request, response) => {
      response.writeHead(303, { location: location.replace('{url}', url) }).end()
    })
    const answer = await clientFor(`${url}/partner`).send(submitRequest, accessToken)
    expect(answer).toMatchObject({ status: 303, locationId: id })
  })
})

describe('the request on the wire', () => {
  test('a POST carries the stored body byte for byte, the token, and the idempotency key in quotes', async () => {
    const { received, url } = await startServer((_request, response) => json(response, 200, accepted))
    await clientFor(url).send(submitRequest, accessToken)
    expect(received[0]).toMatchObject({
      method: 'POST',
      url: '/api/v1/data',
      body: '{"customerId":"c1","amount":1234.50}',
      headers: {
        authorization: `Bearer ${accessToken}`,
        'content-type': 'application/json',
        'idempotency-key': '"0193c1b2-0000-7000-8000-000000000001"',
      },
    })
  })

  test('the idempotency key goes into the configured header, and into no other', async () => {
    const { received, url } = await startServer((_request, response) => json(response, 200, accepted))
    await clientFor(url, { idempotencyHeader: 'X-Idempotency-Key' }).send(submitRequest, accessToken)
    expect(received[0]?.headers['x-idempotency-key']).toBe('"0193c1b2-0000-7000-8000-000000000001"')
    expect(received[0]?.headers['idempotency-key']).toBeUndefined()
  })

  test('the idempotency key is written without quotes if the service takes none', async () => {
    const { received, url } = await startServer((_request, response) => json(response, 200, accepted))
    await clientFor(url, { idempotencyKeyForm: 'bare' }).send(submitRequest, accessToken)
    expect(received[0]?.headers['idempotency-key']).toBe('0193c1b2-0000-7000-8000-000000000001')
  })

  test('a GET has the id as one path segment, below the path of the base URL', async () => {
    const { received, url } = await startServer((_request, response) => json(response, 200, {}))
    const client = clientFor(`${url}/partner`)
    await client.send(statusRequest, accessToken)
    await client.send({ endpoint: 'order_status', body: '../x', idempotencyKey: null }, accessToken)
    expect(received.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET /partner/api/v1/data/tx%201%2F%C3%A4%3F',
      'GET /partner/api/v1/orders/..%2Fx',
    ])
    expect(received[0]?.headers['idempotency-key']).toBeUndefined()
  })

  test('an order goes to the order endpoint', async () => {
    const { received, url } = await startServer((_request, response) => json(response, 201, { orderId: 'o' }))
    await clientFor(url).send({ ...submitRequest, endpoint: 'order' }, accessToken)
    expect(received[0]?.url).toBe('/api/v1/orders')
  })

  test('a token that no header can carry is not sent, and no error is thrown', async () => {
    const { received, url } = await startServer((_request, response) => json(response, 200, accepted))
    const answer = await clientFor(url).send(submitRequest, 'two\r\nlines')
    expect(answer).toMatchObject({ kind: 'no-answer', sent: false })
    expect(received).toEqual([])
  })
})

describe('the answer', () => {
  test('has its code, JSON, Retry-After and X-RateLimit-Remaining', async () => {
    const { url } = await startServer((_request, response) =>
      json(response, 429, { code: 'RATE' }, { 'retry-after': '7', 'x-ratelimit-remaining': '3' }),
    )
    expect(await clientFor(url).send(submitRequest, accessToken)).toMatchObject({
      kind: 'response',
      status: 429,
      json: { code: 'RATE' },
      excerpt: '{"code":"RATE"}',
      code: 'RATE',
      retryAfterMs: 7_000,
      rateRemaining: 3,
    })
  })

  test.each([
    ['99, 98', 98],
    ['7,12', 7],
    ['99, soon', null],
    ['', null],
  ])('the remaining requests that a proxy merged: %s', async (header, rateRemaining) => {
    const { url } = await startServer((_request, response) =>
      json(response, 200, accepted, { 'x-ratelimit-remaining': header }),
    )
    expect(await clientFor(url).send(submitRequest, accessToken)).toMatchObject({ rateRemaining })
  })

  test('of a success has no code, even if its id looks like an error code', async () => {
    const { url } = await startServer((_request, response) => json(response, 200, { transactionId: 'E003' }))
    expect(responded(await clientFor(url).send(submitRequest, accessToken)).code).toBeNull()
  })

  test('keeps the digits of its numbers', async () => {
    const body = '{"result":{"amount":1234.50,"serial":12345678901234567890}}'
    const { url } = await startServer((_request, response) => response.end(body))
    const { json } = responded(await clientFor(url).send(statusRequest, accessToken))
    expect(JSON.stringify(json)).toBe(body)
  })

  test('that is an HTML page has no JSON, and an excerpt of 2 kB', async () => {
    const { url } = await startServer((_request, response) => response.writeHead(502).end('<html>'.repeat(1_000)))
    const answer = responded(await clientFor(url).send(submitRequest, accessToken))
    expect(answer.json).toBeUndefined()
    expect(answer.excerpt).toHaveLength(2_048)
  })

  test('a redirect is reported with its place and not followed', async () => {
    const other = await startServer((_request, response) => json(response, 200, accepted))
    const { url } = await startServer((_request, response) =>
      response.writeHead(307, { location: `${other.url}/there?token=abc` }).end(),
    )
    const answer = responded(await clientFor(url).send(submitRequest, accessToken))
    expect(answer.status).toBe(307)
    expect(answer.excerpt).toBe(`(redirect to ${other.url}/there) `)
    expect(other.received).toEqual([])
  })

  test('a compressed body is refused unread', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, ' '))
    const { url } = await startServer((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    )
    const answer = responded(await clientFor(url).send(submitRequest, accessToken))
    expect(answer).toMatchObject({ status: 200, json: undefined })
    expect(answer.excerpt).toContain('encoded as gzip')
  })

  test('is read only up to the size limit: an endless body is cut', async () => {
    const closed = Promise.withResolvers<void>()
    const { url } = await startServer((_request, response) => {
      response.on('close', closed.resolve)
      const more = () => response.write('"x'.repeat(50_000), () => response.destroyed || setImmediate(more))
      more()
    })
    const answer = responded(await clientFor(url).send(submitRequest, accessToken))
    expect(answer).toMatchObject({ status: 200, json: undefined })
    expect(answer.excerpt).toContain('more than 1000000 bytes')
    await closed.promise
  })

  test('is not an early hint that comes before it', async () => {
    const { url } = await startServer((_request, response) => {
      response.writeEarlyHints({ link: '</x>; rel=preload' })
      json(response, 200, accepted)
    })
    expect(responded(await clientFor(url).send(submitRequest, accessToken)).status).toBe(200)
  })
})

describe('connections', () => {
  test('HTTP/2 is not used, even if the server offers it', async () => {
    const server = createSecureServer({ key: tls('key.pem'), cert: tls('cert.pem'), allowHTTP1: true })
    const versions: string[] = []
    server.on('request', (request, response) => {
      versions.push(request.httpVersion)
      response.end(JSON.stringify(accepted))
    })
    const client = clientFor(`https://localhost:${await listening(server)}`, { ca: tls('cert.pem') })
    expect(responded(await client.send(submitRequest, accessToken)).json).toEqual(accepted)
    expect(versions).toEqual(['1.1'])
  })

  test('a client certificate is sent', async () => {
    const own = { key: tls('key.pem'), cert: tls('cert.pem') }
    const server = createSecureServer({ ...own, ca: own.cert, requestCert: true, allowHTTP1: true })
    server.on('request', (_request, response) => response.end(JSON.stringify(accepted)))
    const url = `https://localhost:${await listening(server)}`
    const shown = clientFor(url, { ca: own.cert, ...own })
    expect(responded(await shown.send(submitRequest, accessToken)).status).toBe(200)
    expect((await clientFor(url, { ca: own.cert }).send(submitRequest, accessToken)).kind).toBe('no-answer')
  })

  test('each connection reports when the service’s certificate expires, and of several in a file the first counts', async () => {
    const server = createSecureServer({ key: tls('key.pem'), cert: tls('cert.pem'), allowHTTP1: true })
    server.on('request', (_request, response) => response.end(JSON.stringify(accepted)))
    const ends: number[] = []
    const url = `https://localhost:${await listening(server)}`
    const client = permittedClientFor(url, { ca: tls('cert.pem') }, (expiresAtMs) => ends.push(expiresAtMs))
    await client.send(submitRequest, accessToken, () => true)
    expect(ends).toEqual([Date.parse('2126-10-28T00:26:50Z')])
    expect(findEarliestExpiryEpochMs(`# ours\n${tls('cert.pem')}\n${tls('cert.pem')}`)).toBe(ends[0])
    expect([findEarliestExpiryEpochMs(null), findEarliestExpiryEpochMs(tls('key.pem'))]).toEqual([null, null])
    expect(findEarliestExpiryEpochMs(tls('cert.pem').replace(/[A-Z]{3}/, 'AAA'))).not.toBeNaN()
  })

  test('a certificate of an unknown authority ends the connection before anything is sent', async () => {
    const server = createSecureServer({ key: tls('key.pem'), cert: tls('cert.pem'), allowHTTP1: true })
    const answer = await clientFor(`https://localhost:${await listening(server)}`).send(submitRequest, accessToken)
    expect(answer).toMatchObject({ kind: 'no-answer', sent: false, cause: 'network' })
    expect(answer).toHaveProperty('detail', expect.stringContaining('SERVICE_CA_FILE'))
  })

  test('each POST has its own connection, and GETs share theirs', async () => {
    const { received, url } = await startServer((_request, response) => json(response, 200, accepted))
    const client = clientFor(url)
    for (const request of [submitRequest, statusRequest])
      for (let n = 0; n < 6; n++) await client.send(request, accessToken)
    const used = (method: string) =>
      new Set(received.filter((one) => one.method === method).map((one) => one.connection))
    expect(used('POST').size).toBe(6)
    expect(used('GET').size).toBeLessThan(3)
  })

  test('closing lets a request in flight finish', async () => {
    const { url } = await startServer((_request, response) => setImmediate(() => json(response, 200, accepted)))
    const client = clientFor(url)
    const answer = client.send(submitRequest, accessToken)
    await client.close()
    expect(responded(await answer).status).toBe(200)
  })
})

describe('whether the request was sent', () => {
  test('connection refused: nothing was sent', async () => {
    const { proxy, client } = await behindProxy()
    await proxy.setFault({ kind: 'refuse' })
    const answer = await client.send(submitRequest, accessToken)
    expect(answer).toMatchObject({ kind: 'no-answer', sent: false, cause: 'network' })
    expect(answer).toHaveProperty('detail', expect.stringContaining('refused'))
  })

  test('a host name that does not exist: nothing was sent, and the cause is this host', async () => {
    const answer = await clientFor('https://nowhere.invalid').send(submitRequest, accessToken)
    expect(answer).toMatchObject({ kind: 'no-answer', sent: false, cause: 'host' })
    expect(answer).toHaveProperty('detail', expect.stringContaining('this host cannot look up'))
  })

  test.each([
    { fault: { kind: 'cut-before-request' }, arrived: 0 },
    { fault: { kind: 'reset' }, arrived: 0 },
    { fault: { kind: 'cut-during-request' }, arrived: 0 },
    { fault: { kind: 'cut-during-request', afterBytes: 100 }, arrived: 0 },
    { fault: { kind: 'cut-after-request' }, arrived: 1 },
    { fault: { kind: 'reset-after-request' }, arrived: 1 },
    { fault: { kind: 'cut-during-answer' }, arrived: 1 },
  ] as const satisfies {
    fault: Fault
    arrived: number
  }[])('$fault: it may have arrived ($arrived did), and is not sent again', async ({ fault, arrived }) => {
    const { proxy, client, received } = await behindProxy()
    await proxy.setFault(fault, { times: 1 })
    const answer = await client.send(submitRequest, accessToken)
    expect(answer).toMatchObject({ kind: 'no-answer', sent: true, cause: 'network' })
    expect(received).toHaveLength(arrived)
    expect(proxy.connections()).toBe(1)
  })

  test.each([
    { kind: 'hang' },
    { kind: 'half-open' },
    { kind: 'hang-after-request' },
  ] as const satisfies Fault[])('$kind: the deadline ends the request, which may have arrived', async (fault) => {
    const { proxy, client } = await behindProxy({ requestTimeoutMs: 2_000 })
    await proxy.setFault(fault)
    const answer = await client.send(submitRequest, accessToken)
    expect(answer).toMatchObject({ kind: 'no-answer', sent: true, cause: 'timeout' })
    expect(answer).toHaveProperty('detail', 'no complete answer within 2 s')
    expect(proxy.connections()).toBe(1)
  })

  test('the deadline stops a body that drips for ever', async () => {
    const { proxy, client } = await behindProxy({ requestTimeoutMs: 2_000 })
    await proxy.setFault({ kind: 'drip', everyMs: 500 })
    // An answer must come, although the body never ends.
    const answer = await client.send(submitRequest, accessToken)
    expect(answer).toMatchObject({ kind: 'no-answer', sent: true, cause: 'timeout' })
  })

  test('an answer in small pieces is read', async () => {
    const { proxy, client } = await behindProxy()
    await proxy.setFault({ kind: 'slice', bytes: 7 })
    expect(responded(await client.send(submitRequest, accessToken)).json).toEqual(accepted)
  })

  test('a server that never completes TLS: given up before anything was sent', async () => {
    const silent = createTcpServer((socket) => socket.on('error', () => {}))
    const url = `https://localhost:${await listening(silent)}`
    const answer = await clientFor(url, { requestTimeoutMs: 200 }).send(submitRequest, accessToken)
    expect(answer).toMatchObject({ kind: 'no-answer', sent: false, cause: 'timeout' })
  })

  test('a TLS handshake that outlasts the deadline: nothing is sent', async () => {
    const server = createSecureServer({ key: tls('key.pem'), cert: tls('cert.pem'), allowHTTP1: true })
    let received = 0
    server.on('request', (_request, response) => {
      received++
      response.end(JSON.stringify(accepted))
    })
    const proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: await listening(server) } })
    later(() => proxy.close())
    const client = permittedClientFor(`https://localhost:${proxy.port}`, { ca: tls('cert.pem') })
    let isGood = true
    await proxy.setFault({ kind: 'hold' })
    const answer = client.send(submitRequest, accessToken, () => isGood)
    await proxy.struck()
    isGood = false
    await proxy.setFault(null)
    expect(await answer).toBeNull()
    expect(received).toBe(0)
  })

  test('a GET whose kept-alive connection was cut earlier is sent on a new one', async () => {
    const { proxy, client } = await behindProxy()
    await client.send(statusRequest, accessToken)
    await proxy.setFault({ kind: 'refuse' })
    await proxy.setFault(null)
    expect(responded(await client.send(statusRequest, accessToken)).status).toBe(200)
    expect(proxy.connections()).toBe(2)
  })

  test('a GET during which its kept-alive connection closes may have arrived, and is not repeated', async () => {
    const { proxy, client, received } = await behindProxy()
    await client.send(statusRequest, accessToken)
    await proxy.setFault({ kind: 'cut-before-request' })
    expect(await client.send(statusRequest, accessToken)).toMatchObject({ kind: 'no-answer', sent: true })
    expect(received).toHaveLength(1)
  })

  test('bytes that are not HTTP are no answer', async () => {
    const garbage = createTcpServer((socket) => socket.once('data', () => socket.end('what?\r\n\r\n')))
    const answer = await clientFor(`http://127.0.0.1:${await listening(garbage)}`).send(submitRequest, accessToken)
    expect(answer).toMatchObject({ kind: 'no-answer', sent: true, detail: expect.stringContaining('not HTTP/1.1') })
  })

  test('“sent” agrees with undici’s diagnostics channel', async () => {
    const published: unknown[] = []
    const record = (message: unknown) => published.push(message)
    subscribe('undici:client:sendHeaders', record)
    later(() => unsubscribe('undici:client:sendHeaders', record))
    const { proxy, client } = await behindProxy({ requestTimeoutMs: 2_000 })
    for (const fault of [{ kind: 'refuse' }, { kind: 'reset' }, { kind: 'hang' }, null] as const) {
      published.length = 0
      await proxy.setFault(fault)
      const answer = await client.send(submitRequest, accessToken)
      expect(published).toHaveLength(answer.kind === 'response' || answer.sent ? 1 : 0)
    }
  })
})

describe('secrets', () => {
  test('an answer that echoes the token or the secret contains neither', async () => {
    const { url } = await startServer((request, response) =>
      json(response, 400, { detail: `bad ${request.headers.authorization}`, secret, form: encodeURIComponent(secret) }),
    )
    const answer = responded(await clientFor(url).send(submitRequest, accessToken))
    const shown = JSON.stringify(answer)
    expect(answer.excerpt).toContain('[redacted]')
    for (const leak of [accessToken, secret, encodeURIComponent(secret)]) expect(answer.excerpt).not.toContain(leak)
    for (const leak of [accessToken, secret]) expect(shown).not.toContain(leak)
  })

  test.each([
    ['an address', 'a%2Bb%2Fc~d%20e%3Df%26g%22h'],
    ['a form', 'a%2Bb%2Fc%7Ed+e%3Df%26g%22h'],
    ['a form in lower case', 'a%2bb%2fc%7ed+e%3df%26g%22h'],
    ['HTML', 'a+b/c~d e=f&amp;g&quot;h'],
    ['numbered HTML entities', 'a&#43;b&#x2F;c~d&#32;e&#061;f&#38;g&#x22;h'],
    ['JSON with escaped signs, as Gson writes it', String.raw`a+b/c~d e\u003df\u0026g\u0022h`],
  ])('a secret that an answer repeats as in %s is redacted, in JSON and in text', async (_, repeated) => {
    for (const body of [JSON.stringify({ message: `cannot parse ${repeated}` }), `cannot parse ${repeated}`]) {
      const { url } = await startServer((_request, response) => response.writeHead(400).end(body))
      const client = clientFor(url, { clientSecret: 'a+b/c~d e=f&g"h' })
      const shown = JSON.stringify(responded(await client.send(submitRequest, accessToken)))
      expect(shown).not.toContain(repeated)
      expect(shown).toContain('cannot parse [redacted]')
    }
  })

  test('a token at the end of the excerpt is not left there in part', async () => {
    const { url } = await startServer((_request, response) =>
      response.writeHead(400).end(`${'x'.repeat(2_040)}${accessToken}`),
    )
    const { excerpt } = responded(await clientFor(url).send(submitRequest, accessToken))
    expect(excerpt).not.toContain(accessToken.slice(0, 4))
  })

  test.each([
    { kind: 'refuse' },
    { kind: 'reset' },
    { kind: 'cut-during-answer' },
  ] as const satisfies Fault[])('no detail holds a token: $kind', async (fault) => {
    const { proxy, client } = await behindProxy()
    await proxy.setFault(fault)
    expect(JSON.stringify(await client.send(submitRequest, accessToken))).not.toContain(accessToken)
    expect(JSON.stringify(await client.requestToken())).not.toContain(secret)
  })
})

describe('a token', () => {
  test('is requested with a form, and returned apart from the answer', async () => {
    const { received, url } = await startServer((_request, response) =>
      json(response, 200, { access_token: accessToken, token_type: 'Bearer', expires_in: 3600 }),
    )
    const { answer, token } = await clientFor(`${url}/auth`).requestToken()
    expect(received[0]).toMatchObject({
      method: 'POST',
      url: '/auth/oauth/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(Object.fromEntries(new URLSearchParams(received[0]?.body))).toEqual({
      grant_type: 'client_credentials',
      client_id: 'client',
      client_secret: secret,
    })
    expect(token).toEqual({ accessToken, lifetimeMs: 3_600_000 })
    expect(JSON.stringify(answer)).not.toContain(accessToken)
  })

  test.each([
    { body: { access_token: 'a', expires_in: '60' }, unitMs: 1000, lifetimeMs: 60_000 },
    { body: { access_token: 'a', expires_in: 90_000 }, unitMs: 1, lifetimeMs: 90_000 },
    { body: { access_token: 'a', expires_in: 60 }, unitMs: 60_000, lifetimeMs: 3_600_000 },
    { body: { access_token: 'a' }, unitMs: 1000, lifetimeMs: null },
    { body: { access_token: 'a', expires_in: -1 }, unitMs: 1000, lifetimeMs: null },
    { body: { access_token: 'a', expires_in: 'soon' }, unitMs: 1000, lifetimeMs: null },
    { body: { access_token: 'a', expires_in: 1e18 }, unitMs: 1000, lifetimeMs: null },
  ])('$body lasts $lifetimeMs ms if the unit is $unitMs ms', async ({ body, unitMs, lifetimeMs }) => {
    const { url } = await startServer((_request, response) => json(response, 200, body))
    const { token } = await clientFor(url, { expiresInUnitMs: unitMs }).requestToken()
    expect(token).toEqual({ accessToken: 'a', lifetimeMs })
  })

  test.each([
    ['access_token is missing', '{}'],
    ['access_token is empty, or has characters that a token must not have', '{"access_token":""}'],
    ['access_token is empty, or has characters that a token must not have', '{"access_token":"two words"}'],
    ['access_token is not a text', '{"access_token":7}'],
    ['the answer is not a JSON object', '[]'],
    ['the answer is not a JSON object', '<html>two</html>'],
    ['access_token is longer than 16384 characters', `{"access_token":"${'a'.repeat(16_385)}"}`],
    ['the answer is not a JSON object', '{"access_token":"two","access_token":"words"}'],
  ])('that cannot be used pauses all with the cause, without the body: %s', async (why, body) => {
    const { url } = await startServer((_request, response) => response.end(body))
    const { answer, token } = await clientFor(url).requestToken()
    expect(token).toBeNull()
    const { detail } = readPauseFromTokenAnswer(answer)
    expect(detail).toBe(`the token issuer answered 200 without a usable token: ${why}`)
  })

  test('that is refused comes with the issuer’s words', async () => {
    const { url } = await startServer((_request, response) => json(response, 401, { error: 'invalid_client' }))
    expect(await clientFor(url).requestToken()).toMatchObject({
      token: null,
      answer: { status: 401, excerpt: '{"error":"invalid_client"}' },
    })
  })
})

async function behindProxy(service: Parameters<typeof clientFor>[1] = {}) {
  const { received, target } = await startServer((_request, response) => json(response, 200, accepted))
  const proxy = await startFaultProxy({ target })
  later(() => proxy.close())
  return { proxy, received, client: clientFor(proxy.url, service) }
}

/** Starts a server on loopback and gives its port. */
async function listening(server: ReturnType<typeof createTcpServer>): Promise<number> {
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(0, 'localhost')
  await once(server, 'listening')
  later(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

const nowMs = Date.parse('2026-11-21T00:00:00Z')

test.each([
  ['7', 7_000],
  [' 0 ', 0],
  ['99999999999', 99_999_999_999_000],
  ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
  ['Sat, 21 Nov 2026 00:01:30 GMT', 90_000],
  ['Saturday, 21-Nov-26 00:01:30 GMT', 90_000],
  ['Fri, 20 Nov 2026 00:00:00 GMT', 0],
  ['-5', null],
  ['1e3', null],
  ['1.5', null],
  ['soon', null],
  ['', null],
  [undefined, null],
])('Retry-After: %s is %s ms', (header, expected) => {
  expect(readRetryAfterMs(header === undefined ? {} : { 'retry-after': header }, nowMs)).toBe(expected)
})

test('a date counts by the service’s clock, as its Date header has it', () => {
  const skewMs = 90_000
  const headers = {
    date: new Date(nowMs + skewMs).toUTCString(),
    'retry-after': new Date(nowMs + skewMs + 5_000).toUTCString(),
  }
  expect(readRetryAfterMs(headers, nowMs)).toBe(5_000)
})
