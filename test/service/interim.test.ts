import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createInterimResponseFilter } from '../../src/service/connect.ts'
import { accessToken, clientFor, later, responded, statusRequest, submitRequest } from './support.ts'

const interim = (line: string) => `HTTP/1.1 ${line}\r\nserver: nginx\r\n\r\n`
const final = (status = '201 Created', body = '{"transactionId":"tx-1"}') =>
  `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`

/** A server that answers each request with the given packets of raw bytes. */
async function startRawServer(packets: readonly string[]) {
  let requests = 0
  const server = createServer((socket: Socket) => {
    socket.on('error', () => {})
    let head = ''
    socket.on('data', async (chunk: Buffer) => {
      head += chunk.toString('latin1')
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      const at = head.indexOf('\r\n\r\n')
      if (at < 0 || head.length < at + 4 + length) return
      head = ''
      requests++
      for (const packet of packets) {
        socket.write(packet)
        await new Promise(setImmediate)
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  later(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => requests }
}

describe('an interim answer that was not requested (RFC 9110, 15.2)', () => {
  test.each([
    ['100 Continue', [interim('100 Continue'), final()]],
    ['100 Continue without headers', ['HTTP/1.1 100 Continue\r\n\r\n', final()]],
    ['100 Continue in one packet with the answer', [interim('100 Continue') + final()]],
    ['100 Continue byte by byte', [...(interim('100 Continue') + final())]],
    ['102 Processing, again and again', [interim('102 Processing'), interim('102 Processing'), final()]],
    ['103 Early Hints', [interim('103 Early Hints'), final()]],
    ['100, 102 and 103 together', [interim('100 Continue') + interim('102 P') + interim('103 E'), final()]],
  ])('before the answer (%s): the answer is read, and the request is sent once', async (_, packets) => {
    const server = await startRawServer(packets)
    const answer = responded(await clientFor(server.url).send(submitRequest, accessToken))
    expect(answer).toMatchObject({ status: 201, json: { transactionId: 'tx-1' } })
    expect(server.requests()).toBe(1)
  })

  test('before each answer to GETs on one connection is skipped', async () => {
    const server = await startRawServer([interim('100 Continue'), final('200 OK', '{"status":"pending"}')])
    const client = clientFor(server.url)
    for (let n = 0; n < 3; n++)
      expect(responded(await client.send(statusRequest, accessToken)).json).toEqual({ status: 'pending' })
  })

  test('with no answer after it leaves open whether the request arrived', async () => {
    const server = createServer((socket) => socket.once('data', () => socket.end(interim('100 Continue'))))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    later(() => server.close())
    const client = clientFor(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    expect(await client.send(submitRequest, accessToken)).toMatchObject({ kind: 'no-answer', sent: true })
  })

  test('that switches protocols is no answer', async () => {
    const server = await startRawServer([
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    ])
    expect(await clientFor(server.url).send(submitRequest, accessToken)).toMatchObject({
      kind: 'no-answer',
      sent: true,
    })
  })
})

describe('createInterimResponseFilter', () => {
  const read = (...chunks: string[]) => {
    const filter = createInterimResponseFilter()
    return chunks.map((chunk) => filter.pass(Buffer.from(chunk)).toString()).join('|')
  }

  test('passes on what looks like an interim answer, once it is known to be none', () => {
    expect(read('HTTP/1.1 ', '200 OK\r\n')).toBe('|HTTP/1.1 200 OK\r\n')
    expect(read('HTTP/1.1 1', '01 Switching')).toBe('|HTTP/1.1 101 Switching')
  })

  test('leaves the body of an answer alone, whatever it says', () => {
    expect(read(final(), interim('100 Continue'))).toBe(`${final()}|${interim('100 Continue')}`)
  })

  test('removes an interim answer of the next request, too', () => {
    const filter = createInterimResponseFilter()
    filter.pass(Buffer.from(final()))
    filter.begin()
    expect(filter.pass(Buffer.from(interim('100 Continue') + final())).toString()).toBe(final())
  })

  test('passes on an endless interim answer, for the parser to refuse', () => {
    const endless = `HTTP/1.1 100 Continue\r\nx: ${'x'.repeat(20_000)}`
    expect(read(endless)).toBe(endless)
  })
})
