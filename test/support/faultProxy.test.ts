import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { type Fault, type FaultProxy, startFaultProxy } from './faultProxy.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

test('without a fault everything passes, and so does a close', async () => {
  const { proxy, client, heard } = await setup()
  client.socket.end('hello')
  await client.ended
  expect(client.received()).toBe('answer to hello')
  expect(heard()).toBe('hello')
  expect(proxy.connections()).toBe(1)
  expect(proxy.forwardedBytes()).toBe(5)
})

test('refuse: the port is closed and open connections are reset; afterwards the same port accepts again', async () => {
  const { proxy, client } = await setup()
  client.socket.write('hello')
  await client.hears('answer to hello')
  await proxy.setFault({ kind: 'refuse' })
  await client.closed
  const refused = connect(proxy.port, proxy.host)
  const [error] = await once(refused, 'error')
  expect(error.code).toBe('ECONNREFUSED')
  await proxy.setFault(null)
  const again = dial(proxy)
  again.socket.write('back')
  await again.hears('answer to back')
})

test.each([
  { fault: { kind: 'cut-before-request' }, server: '', client: '' },
  { fault: { kind: 'reset' }, server: '', client: '' },
  { fault: { kind: 'cut-during-request' }, server: 'hell', client: '' },
  { fault: { kind: 'cut-during-request', afterBytes: 2 }, server: 'he', client: '' },
  { fault: { kind: 'cut-after-request' }, server: 'hello', client: '' },
  { fault: { kind: 'reset-after-request' }, server: 'hello', client: '' },
  { fault: { kind: 'cut-during-answer' }, server: 'hello', client: 'answer to hell' },
] as const satisfies {
  fault: Fault
  server: string
  client: string
}[])('$fault: the server gets "$server", the client "$client", and the connection ends', async ({
  fault,
  server,
  client: heardByClient,
}) => {
  const { proxy, client, heard, serverClosed } = await setup()
  await proxy.setFault(fault)
  client.socket.write('hello')
  await proxy.struck()
  await client.closed
  await serverClosed()
  expect(client.received()).toBe(heardByClient)
  expect(heard()).toBe(server)
})

test('a reset shows as ECONNRESET, a cut does not', async () => {
  const { proxy, client } = await setup()
  await proxy.setFault({ kind: 'reset' })
  client.socket.write('hello')
  await client.closed
  expect(client.error()).toBe('ECONNRESET')
  await proxy.setFault({ kind: 'cut-before-request' })
  const second = dial(proxy)
  second.socket.write('hello')
  await second.closed
  expect(second.error()).toBeNull()
})

test.each([
  { fault: { kind: 'hang' }, server: '' },
  { fault: { kind: 'half-open' }, server: '' },
  { fault: { kind: 'hang-after-request' }, server: 'hello' },
] as const)('$fault: the server gets "$server", the client nothing, and the connection stays open', async (row) => {
  const { proxy, client, heard } = await setup()
  await proxy.setFault(row.fault)
  client.socket.write('hello')
  await proxy.struck()
  expect(heard()).toBe(row.server)
  expect(client.received()).toBe('')
  expect(proxy.open()).toBe(1)
})

test('half-open affects a connection in use, and the server’s close does not reach the client', async () => {
  const { proxy, client, closeAtServer, serverClosed } = await setup()
  client.socket.write('one')
  await client.hears('answer to one')
  await proxy.setFault({ kind: 'half-open' })
  client.socket.write('two')
  await proxy.struck()
  closeAtServer()
  await serverClosed()
  expect(client.socket.closed).toBe(false)
  expect(client.received()).toBe('answer to one')
})

test('slice passes everything in small pieces', async () => {
  const { proxy, client, pieces } = await setup()
  await proxy.setFault({ kind: 'slice', bytes: 100 })
  client.socket.write('x'.repeat(5_000))
  await client.hears(`answer to ${'x'.repeat(100)}`)
  expect(Math.max(...pieces())).toBeLessThan(5_000)
})

test('drip gives the headers at once and the body byte by byte', async () => {
  const { proxy, client } = await setup(() => 'HTTP/1.1 200 OK\r\n\r\nbody')
  await proxy.setFault({ kind: 'drip', everyMs: 1 })
  client.socket.write('hello')
  await client.hears('\r\n\r\nbody')
  expect(client.pieces()[0]).toBeGreaterThanOrEqual('HTTP/1.1 200 OK\r\n\r\n'.length)
  expect(client.pieces().length).toBeGreaterThan(2)
})

test('a fault for two strikes leaves the third connection alone', async () => {
  const { proxy, client } = await setup()
  await proxy.setFault({ kind: 'reset' }, { times: 2 })
  const second = dial(proxy)
  client.socket.write('one')
  second.socket.write('two')
  await proxy.struck(2)
  const third = dial(proxy)
  third.socket.write('three')
  await third.hears('answer to three')
})

async function setup(answerTo = (request: string) => `answer to ${request}`) {
  let heard = ''
  const pieces: number[] = []
  const sockets: Socket[] = []
  const closed = Promise.withResolvers<void>()
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('data', (chunk) => {
      heard += chunk
      pieces.push(chunk.length)
      socket.write(answerTo(chunk.toString()))
    })
    socket.on('error', () => {})
    socket.on('close', () => closed.resolve())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: (server.address() as AddressInfo).port } })
  cleanups.push(
    () => server.close(),
    () => proxy.close(),
  )
  const client = dial(proxy)
  await once(client.socket, 'connect')
  return {
    proxy,
    client,
    heard: () => heard,
    pieces: () => pieces,
    closeAtServer: () => sockets[0]?.destroy(),
    serverClosed: () => closed.promise,
  }
}

function dial(proxy: FaultProxy) {
  let received = ''
  const pieces: number[] = []
  let error: string | null = null
  const socket = connect(proxy.port, proxy.host)
  socket.on('data', (chunk) => {
    received += chunk
    pieces.push(chunk.length)
  })
  socket.on('error', (thrown: NodeJS.ErrnoException) => {
    error = thrown.code ?? ''
  })
  const closed = new Promise((resolve) => socket.on('close', resolve))
  cleanups.push(() => socket.destroy())
  return {
    socket,
    received: () => received,
    pieces: () => pieces,
    error: () => error,
    closed,
    ended: new Promise((resolve) => socket.on('end', resolve)),
    async hears(text: string) {
      while (!received.includes(text)) await once(socket, 'data')
    },
  }
}
