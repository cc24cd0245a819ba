import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { Registry } from 'prom-client'
import { afterEach, describe, expect, type TestContext, test } from 'vitest'
import { type HttpServer, type HttpServerDeps, startHttpServer } from '../../src/observe/httpServer.ts'
import { until } from '../support/until.ts'

const started: HttpServer[] = []
afterEach(async () => {
  for (const server of started.splice(0)) await server.close()
})

test('/metrics answers in Prometheus’ text format', async () => {
  const { get } = await setup()
  const answer = await get('/metrics?from=prometheus')
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe(Registry.PROMETHEUS_CONTENT_TYPE)
  expect(await answer.text()).toBe('a 1\n')
})

test('/livez and /readyz answer 200 if no reason speaks against it', async () => {
  const { get } = await setup()
  const [live, ready] = await Promise.all(['/livez', '/readyz'].map((path) => get(path)))
  expect([live?.status, ready?.status]).toEqual([200, 200])
  expect(await live?.json()).toEqual({ ok: true, reasons: [] })
  expect(await ready?.json()).toEqual({ ok: true, reasons: [], pauses: [] })
})

test('a pause does not make /readyz fail; it is named there without the service’s words', async () => {
  const pauses = [
    { reason: 'unauthorized', sinceMs: 0, untilMs: 60_000, detail: 'the service answered: token of Mr X refused' },
    { reason: 'operator', sinceMs: 1_000, untilMs: null },
  ]
  const { get } = await setup({ ready: () => ({ reasons: [], pauses }) })
  const answer = await get('/readyz')
  expect(answer.status).toBe(200)
  expect(await answer.json()).toEqual({
    ok: true,
    reasons: [],
    pauses: [
      { reason: 'unauthorized', since: '1970-01-01T00:00:00.000Z', until: '1970-01-01T00:01:00.000Z' },
      { reason: 'operator', since: '1970-01-01T00:00:01.000Z', until: null },
    ],
  })
})

test('an instance that is not ready may be alive', async () => {
  const { get } = await setup({ ready: () => ({ reasons: ['the ledger cannot be reached'], pauses: [] }) })
  const answer = await get('/readyz')
  expect(answer.status).toBe(503)
  expect(await answer.json()).toEqual({ ok: false, reasons: ['the ledger cannot be reached'], pauses: [] })
  expect((await get('/livez')).status).toBe(200)
})

test('a dead loop makes /livez answer 503', async () => {
  const { get } = await setup({ live: () => ({ reasons: ['the loop capture has not gone through for 600 s'] }) })
  expect((await get('/livez')).status).toBe(503)
})

test('HEAD gets the same headers and no body', async () => {
  const { get } = await setup()
  const answer = await get('/metrics', { method: 'HEAD' })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-length')).toBe('4')
  expect(await answer.text()).toBe('')
})

test('other paths get 404 and other methods 405, with what is allowed', async () => {
  const { get } = await setup()
  const nowhere = await get('/')
  expect(nowhere.status).toBe(404)
  expect(await nowhere.text()).toContain('/metrics, /livez or /readyz')
  const wrong = await get('/metrics', { method: 'POST', body: 'x'.repeat(100_000) })
  expect(wrong.status).toBe(405)
  expect(wrong.headers.get('allow')).toBe('GET, HEAD')
})

test.each<[string, Partial<HttpServerDeps>]>([
  ['/metrics', { metrics: { render: () => Promise.reject(new Error('hunter2')) } }],
  ['/readyz', { ready: () => fail() }],
  ['/livez', { live: () => fail() }],
])('%s that fails answers 500 without a secret, and the server goes on', async (path, broken) => {
  const { get } = await setup(broken)
  const answer = await get(path)
  expect(answer.status).toBe(500)
  const message = await answer.text()
  expect(message).toContain('failed to answer')
  expect(message).not.toContain('hunter2')
  expect((await get('/nowhere')).status).toBe(404)
})

test('a request that never ends does not keep the server from closing', async () => {
  const { server } = await setup()
  const socket = connect(server.port, '127.0.0.1')
  // A whole request, whose answer shows that the server has the connection, and half of another.
  socket.write('GET /livez HTTP/1.1\r\nhost: x\r\n\r\nGET /metrics HTTP/1.1\r\n')
  await once(socket, 'data')
  // The network decides whether the other side sees an end or a reset.
  socket.on('error', () => {})
  const closed = new Promise((resolve) => socket.once('close', resolve))
  await server.close()
  started.splice(0)
  await closed
})

test('an endless header gets 431', async () => {
  const { server } = await setup()
  const socket = connect(server.port, '127.0.0.1')
  socket.write(`GET /metrics HTTP/1.1\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`)
  const [head] = await once(socket, 'data')
  expect(String(head)).toMatch(/^HTTP\/1\.1 431 /)
  socket.destroy()
})

test('the error about a port in use names it, and the variables that change it', async () => {
  const { server } = await setup()
  await expect(startHttpServer({ ...quiet, port: server.port })).rejects.toThrow(
    `cannot listen on 127.0.0.1 port ${server.port} (EADDRINUSE): set HTTP_HOST and HTTP_PORT`,
  )
})

describe('whatever a client does on a connection to the port of /metrics, the daemon goes on and answers probes', () => {
  const whole = `${'# '.padEnd(300_000, 'x')}\n`

  async function besieged({ onTestFinished }: TestContext) {
    const server = await startHttpServer({
      host: '127.0.0.1',
      port: 0,
      metrics: { render: async () => whole },
      live: () => ({ reasons: [] }),
      ready: () => ({ reasons: [], pauses: [] }),
    })
    const sockets: Socket[] = []
    onTestFinished(async () => {
      for (const socket of sockets) socket.destroy()
      await server.close()
    })
    return {
      /** Connects, and sends this. */
      async open(sent: string) {
        const socket = connect(server.port, '127.0.0.1')
        socket.on('error', () => {})
        sockets.push(socket)
        await once(socket, 'connect')
        socket.write(sent)
        return socket
      },
      /** Number of our connections that are still open. */
      standing: () => sockets.filter(({ closed }) => !closed).length,
      async probe() {
        const answers = await Promise.all(['/livez', '/readyz'].map((path) => fetch(`${server.url}${path}`)))
        return answers.map(({ status }) => status)
      },
    }
  }

  test.concurrent('of 1,000 requests at once on one connection, a hundred are answered, and it is closed', async (context) => {
    const { open, probe } = await besieged(context)
    const socket = await open('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1_000))
    const answered = text(socket)
    expect(await probe()).toEqual([200, 200])
    const statuses = [...(await answered).matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status)
    expect(statuses.filter((status) => status === '200')).toHaveLength(100)
  })

  test.concurrent('headers sent byte by byte, and an answer that is not read, are given up after seconds', async (context) => {
    const { open, standing, probe } = await besieged(context)
    const loris = await open('GET /livez HTTP/1.1\r\n')
    const dripping = setInterval(() => loris.write('x: y\r\n'), 300)
    context.onTestFinished(() => clearInterval(dripping))
    const reader = await open('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(40))
    reader.pause()
    expect(await probe()).toEqual([200, 200])
    loris.resume()
    await until(standing, (count) => count === 1)
    expect(loris.closed).toBe(true)
  })
})

const quiet: HttpServerDeps = {
  host: '127.0.0.1',
  port: 0,
  metrics: { render: async () => 'a 1\n' },
  live: () => ({ reasons: [] }),
  ready: () => ({ reasons: [], pauses: [] }),
}

async function setup(deps: Partial<HttpServerDeps> = {}) {
  const server = await startHttpServer({ ...quiet, ...deps })
  started.push(server)
  return { server, get: (path: string, init?: RequestInit) => fetch(`${server.url}${path}`, init) }
}

function fail(): never {
  throw new Error('hunter2')
}
