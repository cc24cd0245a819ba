import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, type TestContext, test } from 'vitest'
import { startHttpServer } from '../../src/observe/httpServer.ts'
import { until } from '../support/until.ts'

/** Whatever a client does to the port of /metrics, the daemon goes on and answers probes. */

const whole = `${'# '.padEnd(300_000, 'x')}\n`

async function setup({ onTestFinished }: TestContext) {
  let rendered = 0
  const server = await startHttpServer({
    host: '127.0.0.1',
    port: 0,
    metrics: {
      async render() {
        rendered++
        return whole
      },
    },
    live: () => ({ reasons: [] }),
    ready: () => ({ reasons: [], pauses: [] }),
  })
  const sockets: Socket[] = []
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await server.close()
  })
  return {
    rendered: () => rendered,
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

test.concurrent('of 1,000 connections that are held, the oldest are ended, and probes are answered', async (context) => {
  const { open, standing, probe } = await setup(context)
  for (let count = 0; count < 1_000; count += 50) {
    const held = Array.from({ length: 50 }, (_, n) => open(n % 2 === 0 ? '' : 'GET /metrics HTTP/1.1\r\nx: '))
    // On a slow machine some get a 408: a socket that does not read it never sees its end.
    for (const socket of await Promise.all(held)) socket.resume()
  }
  expect(await probe()).toEqual([200, 200])
  expect(await until(standing, (count) => count <= 200)).toBeLessThanOrEqual(200)
})

test.concurrent('of 300 clients that do not read 300 kB answers, at most 200 stay connected', async (context) => {
  const { open, standing, probe, rendered } = await setup(context)
  const readers: Socket[] = []
  for (let count = 0; count < 300; count += 50)
    readers.push(
      ...(await Promise.all(Array.from({ length: 50 }, () => open('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n')))),
    )
  expect(await probe()).toEqual([200, 200])
  for (const reader of readers) reader.resume() // otherwise it would not see its end
  expect(await until(standing, (count) => count <= 200)).toBeLessThanOrEqual(200)
  expect(rendered()).toBeGreaterThan(0)
})

test.concurrent('of 1,000 requests at once on one connection, a hundred are answered, and it is closed', async (context) => {
  const { open, probe, rendered } = await setup(context)
  const socket = await open('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1_000))
  const answered = text(socket)
  expect(await probe()).toEqual([200, 200])
  const statuses = [...(await answered).matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status)
  expect(statuses.filter((status) => status === '200')).toHaveLength(100)
  expect(rendered()).toBeLessThan(100)
})

test.concurrent('headers sent byte by byte, and an answer that is not read, are given up after seconds', async (context) => {
  const { open, standing, probe } = await setup(context)
  const loris = await open('GET /livez HTTP/1.1\r\n')
  const dripping = setInterval(() => loris.write('x: y\r\n'), 300)
  context.onTestFinished(() => clearInterval(dripping))
  const reader = await open('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(40))
  reader.pause()
  expect(await probe()).toEqual([200, 200])
  loris.resume()
  await until(standing, (count) => count === 1, 20_000)
  expect(loris.closed).toBe(true)
})
