import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as after } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hashPassword } from '../../../src/console/guard/passwordHash.ts'
import { until } from '../../support/until.ts'
import { type Guarded, openGuarded } from '../guard/openGuarded.ts'
import { visit } from '../openConsole.ts'

let served: Guarded
beforeAll(async () => {
  served = await openGuarded()
})
afterAll(() => served[Symbol.asyncDispose]())

/** Opens a stream and waits until it has told something. */
async function open(url: string, topic = 'test', cookie = ''): Promise<Socket & { seen: string }> {
  const { hostname, port, host } = new URL(url)
  const socket = Object.assign(connect({ host: hostname, port: Number(port) }), { seen: '' })
  socket.on('error', () => {})
  socket.write(`GET /live?on=${topic} HTTP/1.1\r\nhost: ${host}\r\ncookie: ${cookie}\r\n\r\n`)
  socket.on('data', (chunk) => {
    socket.seen += chunk
  })
  await until(
    () => socket.seen,
    (seen) => seen.includes('event: version') || seen.includes(' 503 '),
  )
  return socket
}

const openMany = (count: number, url: string, cookie = '') =>
  Promise.all(Array.from({ length: count }, () => open(url, 'test', cookie)))

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

test('a stream follows four topics at most: a list that is followed costs a comparison with each step', async () => {
  expect((await served.ask(`/live?${'on=test&'.repeat(5)}`)).status).toBe(404)
  const socket = await open(served.url, 'test&on=test&on=test&on=test')
  expect(socket.seen).toContain(' 200 ')
  socket.destroy()
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

test('one more than 500 streams ends the oldest, and pages are there for all', async () => {
  await using crowded = await openGuarded()
  const sockets: Socket[] = []
  for (const count of [10, 250, 250]) sockets.push(...(await openMany(count, crowded.url)))
  await until(
    () => sockets.filter(({ closed }) => closed).length,
    (closed) => closed === 10,
  )
  expect(sockets.slice(0, 10).every(({ closed }) => closed)).toBe(true)
  expect(await crowded.get('/change')).toMatchObject({ status: 200 })
  for (const socket of sockets) socket.destroy()
})

test('one who has signed in has 50 streams: one more ends the oldest of theirs, and none of another', async () => {
  await using crowded = await openGuarded({ password: await hashPassword('correct horse') })
  const cookieOf = async (name: string) => {
    const visitor = visit(crowded.url)
    await visitor.post('/login', { name, password: 'correct horse' }, '/login')
    return [...visitor.cookies].map(([cookie, value]) => `${cookie}=${value}`).join('; ')
  }
  const [ann, bob] = [await cookieOf('ann'), await cookieOf('bob')]
  const other = await open(crowded.url, 'test', bob)
  const sockets = await openMany(60, crowded.url, ann)
  await until(
    () => sockets.filter(({ closed }) => closed).length,
    (closed) => closed === 10,
  )
  expect(other.closed).toBe(false)
  for (const socket of [other, ...sockets]) socket.destroy()
})

test('1,000 connections that are held without an answer end, the oldest first; streams and pages stay', async () => {
  await using held = await openGuarded()
  const stream = await open(held.url)
  const { hostname, port } = new URL(held.url)
  const sockets: Socket[] = []
  for (let count = 0; count < 1_100; count += 50)
    sockets.push(
      ...(await Promise.all(
        Array.from({ length: 50 }, async (_, i) => {
          const socket = connect({ host: hostname, port: Number(port) })
          socket.on('error', () => {})
          await once(socket, 'connect')
          socket.write(i % 2 === 0 ? 'GET /change HTTP/1.1\r\nx: ' : '')
          return socket.resume()
        }),
      )),
    )
  expect(await held.get('/change')).toMatchObject({ status: 200 })
  expect(stream.closed).toBe(false)
  for (const socket of [stream, ...sockets]) socket.destroy()
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
