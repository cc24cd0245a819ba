import { once } from 'node:events'
import { request } from 'node:http'
import { networkInterfaces } from 'node:os'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { refuseControlRequest } from '../../../src/sandbox/control/controlGuard.ts'
import { openForFile } from '../../support/openForFile.ts'
import { setup } from '../setup.ts'

describe('the decision', () => {
  type Headers = Record<string, string>
  const judge = (headers: Headers, { token, ...more }: { token?: string; [fact: string]: unknown } = {}) =>
    refuseControlRequest(
      {
        address: '127.0.0.1',
        localAddress: '127.0.0.1',
        isOpen: false,
        ...more,
        headers: { host: '127.0.0.1:8080', ...headers },
      },
      token,
    )
  const json = { 'content-length': '2', 'content-type': 'application/json' }

  test.each([
    '127.0.0.1:8080',
    '127.0.0.1',
    '127.9.8.7:1',
    'localhost:9000',
    'LocalHost',
    '[::1]:8080',
  ])('a request from this host for %s is accepted', (host) => {
    expect(judge({ host })).toBeUndefined()
    expect(judge({ host, 'sec-fetch-site': 'none' })).toBeUndefined()
    expect(judge({ host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin', ...json })).toBeUndefined()
  })

  test.each<[string, Headers, string]>([
    [
      'a foreign name that resolves to loopback',
      { host: 'evil.example:8080' },
      'the Host header does not name this host',
    ],
    ['a name that begins like loopback', { host: '127.0.0.1.evil.example' }, 'the Host'],
    ['a foreign name before an @', { host: 'evil.example@localhost' }, 'the Host'],
    ['a subdomain of localhost', { host: 'evil.localhost' }, 'the Host'],
    ['the unspecified address', { host: '0.0.0.0:8080' }, 'the Host'],
    ['no Host', { host: '' }, 'the Host'],
    ['a page of another site', { origin: 'http://evil.example' }, 'a web page of http://evil.example'],
    ['a page without an origin', { origin: 'null' }, 'a web page of null'],
    ['a page of another program on this host', { origin: 'http://127.0.0.1:3000' }, 'a web page of'],
    ['an image on a page', { 'sec-fetch-site': 'cross-site' }, 'a web page of another site'],
    ['a page on another port', { 'sec-fetch-site': 'same-site' }, 'a web page of another site'],
    ...[
      'forwarded',
      'via',
      'x-forwarded',
      'x-forwarded-for',
      'x-original-host',
      'x-original-forwarded-for',
      'x-envoy-external-address',
      'x-amzn-trace-id',
      'x-proxyuser-ip',
      'x-cluster-client-ip',
      'fastly-client-ip',
      'cf-connecting-ip',
      'cf-ray',
      'proxy-connection',
      'x-forwarded-host',
      'x-forwarded-proto',
      'x-real-ip',
      'true-client-ip',
    ].map((name): [string, Headers, string] => [
      `a proxy that says ${name}`,
      { [name]: 'x' },
      `the header ${name} shows that a proxy sent the request`,
    ]),
  ])('%s is refused, and the message names SANDBOX_CONTROL_TOKEN', (_, headers, says) => {
    const refusal = judge(headers)
    expect(refusal?.status).toBe(403)
    expect(JSON.stringify(refusal?.body)).toContain(says)
    expect(JSON.stringify(refusal?.body)).toContain('SANDBOX_CONTROL_TOKEN')
  })

  test('a client from another host is refused', () => {
    expect(judge({}, { address: '10.0.0.7' })?.status).toBe(403)
    expect(judge({}, { address: '128.0.0.1' })?.status).toBe(403)
    expect(judge({}, { address: '::1' })).toBeUndefined()
  })

  test('a client on this host may use the host’s network address, if the Host header names that address', () => {
    const own = { address: '192.168.1.5', localAddress: '192.168.1.5' }
    expect(judge({ host: '192.168.1.5:8080' }, own)).toBeUndefined()
    expect(judge({ host: 'evil.example' }, own)?.status).toBe(403)
    expect(judge({ host: '192.168.1.6' }, own)?.status).toBe(403)
    expect(judge({ host: '[fd00::7]' }, { address: 'fd00::7', localAddress: 'fd00::7' })).toBeUndefined()
    expect(judge({ host: '192.168.1.5' }, { ...own, address: '192.168.1.9' })?.status).toBe(403)
  })

  test('a body needs a JSON content type', () => {
    expect(judge({ 'content-length': '2', 'content-type': 'text/plain' })?.status).toBe(415)
    expect(judge({ 'content-length': '2' })?.status).toBe(415)
    expect(judge({ 'transfer-encoding': 'chunked', 'content-type': 'application/jsonp' })?.status).toBe(415)
    expect(judge({ 'content-length': '0', 'content-type': 'text/plain' })).toBeUndefined()
    expect(judge({ ...json, 'content-type': 'Application/JSON; charset=utf-8' })).toBeUndefined()
  })

  test('with a token set, requests with it pass from anywhere, and others are refused even on loopback', () => {
    const far = { token: 'let-me', address: '10.0.0.7' }
    const proxied = { authorization: 'Bearer let-me', host: 'sandbox.example', via: '1.1 proxy' }
    expect(judge(proxied, far)).toBeUndefined()
    expect(judge({ ...proxied, 'content-length': '2' }, far)?.status).toBe(415)
    for (const authorization of ['Bearer let-m', 'Bearer let-me!', 'Basic let-me', 'let-me', 'Bearer', 'Bearer  ']) {
      expect(judge({ authorization }, { token: 'let-me' })?.status).toBe(401)
    }
    expect(judge({}, { token: 'let-me' })).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': 'Bearer realm="sandbox control"' },
    })
  })

  test('an open endpoint answers every request on loopback, and none from other hosts', () => {
    expect(judge({ host: 'x', via: 'y' }, { isOpen: true, token: 'let-me' })).toBeUndefined()
    expect(judge({}, { isOpen: true, address: '10.0.0.7' })?.status).toBe(403)
  })
})

describe('over a socket', () => {
  const s = openForFile(() => setup())

  /** Sends a request with any Host and other headers, which HTTP libraries would not allow. */
  async function send(url: string, method: string, headers: Record<string, string>, body = '') {
    const sent = request(url, { method, headers, agent: false }).end(body)
    const [answer] = await once(sent, 'response')
    return { status: answer.statusCode as number, body: JSON.parse(await text(answer)) }
  }

  test('a web page can neither create a fault nor read the ledger', async () => {
    const { url } = s.sandbox
    const page = { origin: 'http://evil.example', 'content-type': 'text/plain' }
    expect((await send(`${url}/_sandbox/faults`, 'POST', page, '{"kind":"drop"}')).status).toBe(403)
    expect((await send(`${url}/_sandbox/ledger`, 'GET', { host: 'evil.example' })).status).toBe(403)
    expect((await send(`${url}/_sandbox/ledger`, 'GET', { 'x-forwarded-for': '10.0.0.7' })).status).toBe(403)
    expect((await send(`${url}/_sandbox/settings`, 'PATCH', { 'content-type': 'text/plain' }, '{}')).status).toBe(415)
    expect((await s.control('GET', '/faults')).rows).toEqual([])
  })

  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')
  test.runIf(own)('a program on this host may use the host’s network address', async () => {
    await using everywhere = await setup({ host: '0.0.0.0', insecureDefaults: true })
    const address = `http://${own?.address}:${everywhere.sandbox.port}`
    expect((await send(`${address}/_sandbox/ledger`, 'GET', {})).status).toBe(200)
    expect((await send(`${address}/_sandbox/health`, 'GET', {})).status).toBe(200)
    expect((await send(`${address}/_sandbox/ledger`, 'GET', { host: 'evil.example' })).status).toBe(403)
  })

  test('with SANDBOX_CONTROL_TOKEN set, only the token gives access', async () => {
    await using guarded = await setup({ controlToken: 'let-me-in-on-this' })
    const ledger = `${guarded.sandbox.url}/_sandbox/ledger`
    const authorization = 'Bearer let-me-in-on-this'
    expect((await send(ledger, 'GET', { authorization, host: 'sandbox.example', via: 'a proxy' })).status).toBe(200)
    const { status, body } = await send(ledger, 'GET', {})
    expect([status, JSON.stringify(body)]).toEqual([401, expect.stringContaining('SANDBOX_CONTROL_TOKEN')])
    expect((await send(`${guarded.sandbox.url}/_sandbox/health`, 'GET', {})).status).toBe(200)
    expect((await send(ledger, 'GET', { authorization: 'Bearer let-you-in-on-this' })).status).toBe(401)
  })
})
