import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as after } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Guarded, openGuarded } from '../guard/openGuarded.ts'

let served: Guarded
beforeAll(async () => {
  served = await openGuarded()
})
afterAll(() => served[Symbol.asyncDispose]())

/** Opens a stream and waits until it has told something. */
async function open(url: string, topic = 'test'): Promise<Socket & { seen: string }> {
  const { hostname, port, host } = new URL(url)
  const socket = Object.assign(connect({ host: hostname, port: Number(port) }), { seen: '' })
  socket.on('error', () => {})
  socket.write(`GET /live?on=${topic} HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
  socket.on('data', (chunk) => {
    socket.seen += chunk
  })
  await until(
    () => socket.seen,
    (seen) => seen.includes('event: version') || seen.includes(' 503 '),
  )
  return socket
}

test('a stream is of events, is kept by nobody, and says what stands', async () => {
  const socket = await open(served.url)
  const { seen } = socket
  expect(seen).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  for (const header of [
    'content-type: text/event-stream',
    'cache-control: no-store',
    'x-accel-buffering: no',
    'content-security-policy: ',
  ])
    expect(seen).toContain(header)
  expect(seen).toContain('event: version\ndata: {"topic":"test","version":"1"}\n\n')
  socket.destroy()
})

test('what nobody knows is followed by nobody, nor is it asked for by HEAD', async () => {
  for (const path of ['/live', '/live?on=unknown', '/live?on=test&on=unknown', '/live?on=__proto__'])
    expect(await served.ask(path)).toMatchObject({ status: 404 })
  expect(await served.ask('/live?on=test', { method: 'HEAD' })).toMatchObject({ status: 404 })
})

test('a thousand streams that were opened and closed leave nothing behind: no connection, no reading', async () => {
  const isQuiet = async () => {
    const { connections, reads } = await served.count()
    await after(300) // three rounds of the topic
    return connections === 0 && reads === (await served.count()).reads
  }
  for (let round = 0; round < 10; round++) {
    const sockets = await Promise.all(Array.from({ length: 100 }, () => open(served.url)))
    // Half of them go as a browser's tab does, half as a machine that loses its power.
    for (const [i, socket] of sockets.entries()) i % 2 === 0 ? socket.end() : socket.resetAndDestroy()
  }
  await until(isQuiet, (quiet) => quiet)
})

test('so many streams at once are enough; pages are there for all others', async () => {
  await using crowded = await openGuarded()
  const sockets = await Promise.all(Array.from({ length: 510 }, () => open(crowded.url)))
  expect(sockets.filter(({ seen }) => seen.includes(' 503 ')).length).toBe(10)
  expect(await crowded.get('/change')).toMatchObject({ status: 200 })
  for (const socket of sockets) socket.destroy()
  await until(
    async () => (await open(crowded.url)).seen,
    (seen) => seen.includes('event: version'),
  )
})

test('the end of the console ends its streams, and waits for none', async () => {
  const ending = await openGuarded()
  const sockets = await Promise.all(Array.from({ length: 20 }, () => open(ending.url)))
  const ends = sockets.map((socket) => once(socket, 'close'))
  const beganMs = performance.now()
  await ending[Symbol.asyncDispose]()
  await Promise.all(ends)
  expect(performance.now() - beganMs).toBeLessThan(2_900)
})
