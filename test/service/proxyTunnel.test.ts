import { createServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import { expect, test } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { type ProxyTreatment, startConnectProxy } from '../support/connectProxy.ts'
import { freePort } from '../support/freePort.ts'
import { listenOnLoopback } from '../support/listenOnLoopback.ts'
import { accessToken, clientFor, json, later, responded, startServer, statusRequest, submitRequest } from './support.ts'

const accepted = { transactionId: 'tx-1', status: 'accepted', timestamp: '2026-11-21T00:00:00Z' }

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
    clientFor(url, { ca: authority, proxy: proxy.url.replace('//', `//${userinfo}`) }).send(submitRequest, accessToken)
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
