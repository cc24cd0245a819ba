import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer as createPlainServer, type RequestListener } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer, type ServerOptions } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createInterimResponseFilter } from '../../src/service/connect.ts'
import { findPauseForGetAnswer } from '../../src/service/readAnswer.ts'
import { createAuthority, selfSigned } from '../support/certificates.ts'
import { type ProxyTreatment, startConnectProxy } from '../support/connectProxy.ts'
import { startFaultProxy } from '../support/faultProxy.ts'
import { freePort } from '../support/freePort.ts'
import { listenOnLoopback } from '../support/listenOnLoopback.ts'
import { until } from '../support/until.ts'
import {
  accessToken,
  clientFor,
  json,
  later,
  permittedClientFor,
  responded,
  startServer,
  statusRequest,
  submitRequest,
} from './support.ts'

const dayMs = 86_400_000
const past = { fromMs: Date.now() - 2 * dayMs, untilMs: Date.now() - dayMs }
const hosts = ['localhost']
const name = 'localhost'

const ours = createAuthority('ours')
const theirs = createAuthority('theirs')
const server = ours.issue({ name, hosts })
const client = ours.issue({ name: 'client' })

describe('a service that outboxd does not trust', () => {
  test.each<[string, ServerOptions, string]>([
    ['an expired certificate', ours.issue({ name, hosts, ...past }), 'has expired: tell its operator'],
    ['one of tomorrow', ours.issue({ name, hosts, fromMs: Date.now() + dayMs }), 'clock of this machine'],
    ['one of another host', ours.issue({ name: 'other', hosts: ['other.example'] }), 'is for another host'],
    ['one of an unknown authority', theirs.issue({ name, hosts }), 'an unknown authority signed'],
    [
      'one of an unknown authority, with its chain',
      chained(theirs.issue({ name, hosts }), theirs.cert),
      'an unknown authority signed',
    ],
    [
      'one of an authority of the same name',
      createAuthority('ours').issue({ name, hosts }),
      'an unknown authority signed',
    ],
    ['a self-signed one', selfSigned({ name, hosts }), 'is self-signed'],
    ['TLS 1.1', { ...server, minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: weak }, 'does not speak TLS 1.2'],
  ])("the service's certificate is expired, foreign or self-signed (%s): nothing leaves", async (_, options, says) => {
    const { url, received } = await listen(createServer(options, answer))
    const refused = await clientFor(url, { ca: ours.cert }).send(submitRequest, accessToken)
    expect(refused).toMatchObject({ kind: 'no-answer', sent: false, detail: expect.stringContaining(says) })
    expect(findPauseForGetAnswer(refused)).toMatchObject({
      reason: 'unreachable',
      detail: expect.stringContaining(says),
    })
    expect(received()).toBe(0)
  })

  test('that speaks only HTTP/2 is named as such', async () => {
    const { url } = await listen(createSecureServer(server) as unknown as ReturnType<typeof createServer>)
    const refused = await clientFor(url, { ca: ours.cert }).send(submitRequest, accessToken)
    expect(refused).toMatchObject({ sent: false, detail: expect.stringMatching(/^the service speaks only HTTP\/2/) })
  })

  test('that speaks no TLS is named as such', async () => {
    const { url } = await listen(createPlainServer(answer))
    const refused = await clientFor(url).send(submitRequest, accessToken)
    expect(refused).toMatchObject({ sent: false, detail: expect.stringContaining('does not speak TLS') })
  })
})

describe('a service that does not trust outboxd', () => {
  const noCertificate = {}
  const expired = ours.issue({ name: 'client', ...past })
  const foreign = theirs.issue({ name: 'client' })

  test.each(
    (['TLSv1.2', 'TLSv1.3'] as const).flatMap((version) => [
      [version, 'no client certificate', noCertificate, 'client certificate'] as const,
      [version, 'an expired one', expired, 'SERVICE_CERT_FILE'] as const,
      [version, 'one of an unknown authority', foreign, 'SERVICE_CERT_FILE'] as const,
    ]),
  )('a client certificate is missing, expired or refused (%s, %s): nothing leaves', async (version, _, shown, says) => {
    const { url, received } = await listen(createServer({ ...wantsCertificate, maxVersion: version }, answer))
    const refused = await clientFor(url, { ca: ours.cert, ...shown }).send(submitRequest, accessToken)
    expect(refused).toMatchObject({ kind: 'no-answer', sent: false, detail: expect.stringContaining(says) })
    expect(received()).toBe(0)
  })

  test.each([
    'TLSv1.2',
    'TLSv1.3',
  ] as const)('%s: a valid client certificate is accepted each time', async (version) => {
    const { url } = await listen(createServer({ ...wantsCertificate, maxVersion: version }, answer))
    const trusted = clientFor(url, { ca: ours.cert, ...client })
    for (let time = 0; time < 3; time++)
      expect(responded(await trusted.send(submitRequest, accessToken)).status).toBe(200)
  })

  test('a refusal is noticed in time over a slow connection', async () => {
    const { port, received } = await listen(createServer(wantsCertificate, answer))
    const proxy = await startFaultProxy({ target: { host: '127.0.0.1', port } })
    later(() => proxy.close())
    await proxy.setFault({ kind: 'delay', ms: 80 })
    const far = clientFor(`https://localhost:${proxy.port}`, { ca: ours.cert })
    const refused = await far.send(submitRequest, accessToken)
    expect(refused).toMatchObject({ sent: false, detail: expect.stringContaining('outboxd has none') })
    expect(received()).toBe(0)
  })

  test('a refusal is noticed even if the process was suspended meanwhile', async () => {
    const { url, received } = await listen(createServer(wantsCertificate, answer))
    const stopped = permittedClientFor(url, { ca: ours.cert }, () => process.nextTick(stopFor, 300))
    const refused = await stopped.send(submitRequest, accessToken, () => true)
    expect(refused).toMatchObject({ sent: false, detail: expect.stringContaining('outboxd has none') })
    expect(received()).toBe(0)
  })

  const hasOpenssl = spawnSync('openssl', ['version']).status === 0
  test.skipIf(!hasOpenssl)('a service without session tickets gets its request after a moment', async () => {
    const port = await freePort()
    const folder = mkdtempSync(join(tmpdir(), 'tls-'))
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    const served = ['-cert', file('cert', server.cert), '-key', file('key', server.key), '-num_tickets', '0', '-www']
    const program = spawn('openssl', ['s_server', '-tls1_3', '-accept', String(port), ...served])
    later(() => program.kill())
    let said = ''
    program.stdout.on('data', (text) => {
      said += text
    })
    await until(
      () => said,
      (text) => text.includes('ACCEPT'),
    )
    const answered = await clientFor(`https://localhost:${port}`, { ca: ours.cert }).send(
      { endpoint: 'status', body: 'tx', idempotencyKey: null },
      accessToken,
    )
    expect(responded(answered).status).toBe(200)
  })
})

function stopFor(ms: number): void {
  const sinceMs = performance.now()
  while (performance.now() - sinceMs < ms);
}

const weak = 'DEFAULT@SECLEVEL=0'
const wantsCertificate: ServerOptions = { ...server, ca: ours.cert, requestCert: true, rejectUnauthorized: true }

const chained = ({ cert, key }: { cert: string; key: string }, authority: string) => ({ cert: cert + authority, key })

const answer: RequestListener = (request, response) => {
  request.resume()
  response.end('{}')
}

async function listen(server: ReturnType<typeof createServer> | ReturnType<typeof createPlainServer>) {
  let received = 0
  server.on('request', () => received++)
  const listening = await listenOnLoopback(server)
  later(() => listening[Symbol.asyncDispose]())
  const { port } = listening
  return { port, url: `https://localhost:${port}`, received: () => received }
}

const interim = (line: string) => `HTTP/1.1 ${line}\r\nserver: nginx\r\n\r\n`
const final = (status = '201 Created', body = '{"transactionId":"tx-1"}') =>
  `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`

/** A server that answers each request with the given packets of raw bytes. */
async function startRawServer(packets: readonly string[]) {
  let requests = 0
  const server = createTcpServer((socket: Socket) => {
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
    const server = createTcpServer((socket) => socket.once('data', () => socket.end(interim('100 Continue'))))
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

const accepted = { transactionId: 'tx-1', status: 'accepted', timestamp: '2026-11-21T00:00:00Z' }

describe('through a proxy', () => {
  test('the token and all calls go through the proxy, inside the service’s TLS, so that the proxy can read nothing', async () => {
    const { url, proxy, authority, received } = await behindProxy()
    const client = clientFor(url, { proxy: proxy.url, ca: authority })
    await client.requestToken()
    expect(responded(await client.send(submitRequest, accessToken)).json).toEqual(accepted)
    expect(responded(await client.send(statusRequest, accessToken)).status).toBe(200)
    expect(received()).toEqual(['POST /oauth/token', 'POST /api/v1/data', 'GET /api/v1/data/tx%201%2F%C3%A4%3F'])
    expect(new Set(proxy.asked())).toEqual(new Set([new URL(url).host]))
    const stranger = await clientFor(url, { proxy: proxy.url }).send(submitRequest, accessToken)
    expect(stranger).toMatchObject({ sent: false, detail: expect.stringContaining('SERVICE_CA_FILE') })
  })

  test('user name and password are sent to the proxy, percent-decoded', async () => {
    const { url, proxy, authority } = await behindProxy({ kind: 'authenticated', user: 'me', password: 'p@ss:/word' })
    const through = (userinfo: string) =>
      clientFor(url, { ca: authority, proxy: proxy.url.replace('//', `//${userinfo}`) }).send(
        submitRequest,
        accessToken,
      )
    expect(responded(await through('me:p%40ss%3A%2Fword@')).status).toBe(200)
    for (const wrong of ['', 'me:hunter2@']) {
      const refused = await through(wrong)
      expect(refused).toMatchObject({ sent: false, cause: 'network', detail: expect.stringContaining('PROXY_407') })
      expect(refused).toHaveProperty('detail', expect.not.stringMatching(/hunter2|sec!/))
    }
  })

  test.each<[ProxyTreatment, string]>([
    [{ kind: 'refuse', status: 403 }, 'the proxy refuses connections to the service'],
    [{ kind: 'refuse', status: 502 }, 'could not reach the service'],
    [{ kind: 'refuse', status: 302 }, 'is this host an HTTP proxy'],
    [{ kind: 'close' }, 'is this host an HTTP proxy'],
  ])('if the proxy refuses or is not there (%j), nothing leaves, and the message names the proxy', async (treatment, says) => {
    const { url, proxy, received } = await behindProxy(treatment)
    const refused = await clientFor(url, { proxy: proxy.url }).send(submitRequest, accessToken)
    expect(refused).toMatchObject({ kind: 'no-answer', sent: false, cause: 'network' })
    expect(refused).toHaveProperty('detail', expect.stringContaining(says))
    expect(received()).toEqual([])
    expect(proxy.asked()).toHaveLength(1)
  })

  test('if the proxy hangs, the request is given up before it left', async () => {
    const { url, proxy } = await behindProxy({ kind: 'hang' })
    const refused = await clientFor(url, { proxy: proxy.url, requestTimeoutMs: 300 }).send(submitRequest, accessToken)
    expect(refused).toMatchObject({ kind: 'no-answer', sent: false, cause: 'timeout' })
  })

  test('a proxy that cannot be reached, or is none, is named', async () => {
    await using silent = await listenOnLoopback(createTcpServer((socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n')))
    for (const [at, says] of [
      [await freePort(), 'the proxy cannot be reached: check SERVICE_PROXY'],
      [silent.port, 'is this host an HTTP proxy'],
    ] as const) {
      const refused = await clientFor('https://service.example', { proxy: `http://127.0.0.1:${at}` }).send(
        submitRequest,
        accessToken,
      )
      expect(refused).toMatchObject({ sent: false, detail: expect.stringContaining(says) })
    }
  })

  test('if the proxy cuts a request, the request may have arrived and is not sent again', async () => {
    const { received, url } = await startServer((_request, response) => json(response, 200, accepted))
    const proxy = await startConnectProxy({ kind: 'cut', afterBytes: 120 })
    later(() => proxy[Symbol.asyncDispose]())
    const cut = await clientFor(url, { proxy: proxy.url }).send(submitRequest, accessToken)
    expect(cut).toMatchObject({ kind: 'no-answer', sent: true, cause: 'network' })
    expect(proxy.asked()).toHaveLength(1)
    expect(received).toEqual([])
  })

  test('if the proxy cuts the TLS handshake with the service, nothing has left', async () => {
    const { url, proxy, authority } = await behindProxy({ kind: 'cut', afterBytes: 100 })
    const cut = await clientFor(url, { proxy: proxy.url, ca: authority }).send(submitRequest, accessToken)
    expect(cut).toMatchObject({ kind: 'no-answer', sent: false })
  })

  async function behindProxy(treatment?: ProxyTreatment) {
    const authority = createAuthority('ours')
    const seen: string[] = []
    const server = createServer(authority.issue({ name: 'localhost', hosts: ['localhost'] }), (request, response) => {
      seen.push(`${request.method} ${request.url}`)
      request.resume()
      json(response, 200, accepted)
    })
    const service = await listenOnLoopback(server)
    later(() => service[Symbol.asyncDispose]())
    const proxy = await startConnectProxy(treatment)
    later(() => proxy[Symbol.asyncDispose]())
    const url = `https://localhost:${service.port}`
    return { url, proxy, authority: authority.cert, received: () => seen }
  }
})
