import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer as createPlainServer, type RequestListener } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer, type ServerOptions } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findPauseForGetAnswer } from '../../src/service/readAnswer.ts'
import { createAuthority, selfSigned } from '../support/certificates.ts'
import { startFaultProxy } from '../support/faultProxy.ts'
import { freePort } from '../support/freePort.ts'
import { listenOnLoopback } from '../support/listenOnLoopback.ts'
import { until } from '../support/until.ts'
import { accessToken, clientFor, later, permittedClientFor, responded, submitRequest } from './support.ts'

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
