import { hostname } from 'node:os'
import { beforeEach, describe, expect, test } from 'vitest'
import { isNameOfThisConsole } from '../../../src/console/guard/refuseForeign.ts'
import { openForFile } from '../../support/openForFile.ts'
import { asForm } from '../openConsole.ts'
import { openGuarded } from './openGuarded.ts'

/** A console on loopback, which needs no sign-in. */

const served = openForFile(openGuarded)
beforeEach(() => void served.changes.splice(0))

const pages = ['/change', '/nowhere']

describe('the Host', () => {
  test.each(['localhost', '127.0.0.1:1', '[::1]:9465', 'LOCALHOST:80'])('%s is accepted', async (host) => {
    expect(await served.ask('/change', { headers: { host } })).toMatchObject({ status: 200 })
  })

  test.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    'x@localhost',
    'a/b',
  ])('%s is refused, for pages, streams and files alike', async (host) => {
    for (const path of [...pages, '/overview/version', '/assets/console.js'])
      expect(await served.ask(path, { headers: { host } }), path).toMatchObject({ status: 403 })
  })

  test.each<[string, boolean]>([
    ['console.example', true],
    ['CONSOLE.example:9465', true],
    ['www.console.example', false],
    ['console.example.evil.example', false],
    [hostname(), false],
  ])('with CONSOLE_NAME, %s is accepted: %s', async (host, isOurs) => {
    await using named = await openGuarded({ names: ['console.example'] })
    expect(await named.ask('/change', { headers: { host } })).toMatchObject({ status: isOurs ? 200 : 403 })
  })

  test('beyond loopback, this machine’s name is accepted, but no name that only begins with it', () => {
    const own = hostname().toLowerCase()
    const isOurs = (name: string) =>
      isNameOfThisConsole(name, '10.0.0.5', { host: '0.0.0.0', names: ['console.example'] })
    expect([own, 'console.example', '10.0.0.5', 'localhost'].map(isOurs)).toEqual([true, true, true, true])
    expect([`${own}.evil.example`, `${own}.`, '10.0.0.6', 'evil.example'].map(isOurs)).toEqual([
      false,
      false,
      false,
      false,
    ])
  })

  test('is also checked for a form', async () => {
    const headers = { ...asForm('http://evil.example'), host: 'evil.example' }
    expect(await served.ask('/change', { method: 'POST', headers })).toMatchObject({ status: 403 })
    expect(served.changes).toEqual([])
  })
})

describe('a form', () => {
  const post = (headers: Record<string, string>) => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    return served.ask('/change', { method: 'POST', headers: { ...form, ...headers } })
  }

  test('of the console’s own page is accepted, and knows its operator', async () => {
    expect(await post(asForm(served.url))).toMatchObject({ status: 303 })
    expect(await post({ origin: served.url })).toMatchObject({ status: 303 }) // over HTTP a browser sends no more than this
    expect(served.changes).toEqual(['operator test', 'operator test'])
  })

  test.each<[string, Record<string, string>]>([
    ['another site', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
    ['another site, without Sec-Fetch-Site', { origin: 'https://evil.example' }],
    ['another port of this machine', { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' }],
    ['a page without an origin', { origin: 'null' }],
    [
      'a page whose Origin contradicts Sec-Fetch-Site',
      { origin: 'http://evil.example', 'sec-fetch-site': 'same-origin' },
    ],
    ['an unknown page', {}],
  ])('of %s is refused', async (_, headers) => {
    const { status, text } = await post(headers)
    expect(status).toBe(403)
    expect(text).toContain('A page of another site sent this form. Nothing was changed.')
    expect(served.changes).toEqual([])
  })

  test.each([
    'application/json',
    'text/plain',
    'multipart/form-data; boundary=x',
  ])('sent as %s is refused', async (type) => {
    const headers = { ...asForm(served.url), 'content-type': type }
    expect((await served.ask('/change', { method: 'POST', headers, body: '{}' })).status).toBeGreaterThanOrEqual(400)
    expect(served.changes).toEqual([])
  })

  test.each(['PUT', 'PATCH', 'DELETE', 'OPTIONS'])('sent by %s is refused', async (method) => {
    const { status } = await served.ask('/change', { method, headers: asForm(served.url) })
    expect(status).toBeGreaterThanOrEqual(400)
  })

  test('of more than 2 MB is refused', async () => {
    const body = `payload=${'x'.repeat(2_000_000)}`
    expect(await served.ask('/change', { method: 'POST', headers: asForm(served.url), body })).toMatchObject({
      status: 413,
    })
    expect(served.changes).toEqual([])
  })
})

describe('a page of another site', () => {
  const asked = (site: string, mode: string, dest: string) =>
    served.ask('/change', { headers: { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest } })

  test.each([
    ['cross-site', 'navigate', 'iframe'],
    ['cross-site', 'navigate', 'object'],
    ['cross-site', 'no-cors', 'image'],
    ['cross-site', 'no-cors', 'script'],
    ['cross-site', 'cors', 'empty'],
    ['same-site', 'cors', 'empty'], // from another port of this machine
  ])('cannot load the console: %s, %s, %s', async (site, mode, dest) => {
    expect(await asked(site, mode, dest)).toMatchObject({ status: 403 })
  })

  test('may link to the console', async () => {
    expect(await asked('cross-site', 'navigate', 'document')).toMatchObject({ status: 200 })
  })
})

test('with --read-only every form is refused', async () => {
  await using readOnly = await openGuarded({ isReadOnly: true })
  const { status, text } = await readOnly.post('/change')
  expect(status).toBe(403)
  expect(text).toContain('This console was started with --read-only. Nothing was changed.')
  expect(readOnly.changes).toEqual([])
  expect((await readOnly.get('/change')).text).toContain('<strong>read only</strong>')
})

test('every answer has the security headers', async () => {
  for (const path of [...pages, '/assets/console.js', '/overview/version', '/']) {
    const { headers } = await served.ask(path)
    expect(headers['content-security-policy'], path).toBe(
      "default-src 'none';style-src 'self';script-src 'self';img-src 'self';connect-src 'self';form-action 'self';base-uri 'none';frame-ancestors 'none'",
    )
    expect(headers, path).toMatchObject({ 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' })
    expect(headers['cache-control'], path).toBe(path.startsWith('/assets') ? 'max-age=31536000, immutable' : 'no-store')
    expect(headers['set-cookie']).toBeUndefined()
  }
})

test('an invalid address gets 400 with a fixed text and security headers', async () => {
  const { status, headers, text } = await served.ask('/%ff')
  expect({ status, text }).toEqual({ status: 400, text: 'The address cannot be read.\n' })
  expect(headers).toMatchObject({
    'content-security-policy': "default-src 'none'",
    'x-content-type-options': 'nosniff',
  })
})

test('headers of more than 16 kB get 431', async () => {
  expect(await served.ask('/change', { headers: { 'x-long': 'x'.repeat(17_000) } })).toMatchObject({ status: 431 })
})

describe('a console that trusts a proxy at 127.0.0.7', () => {
  const proxy = '127.0.0.7'

  const served = openForFile(() => openGuarded({ trustHeader: 'x-forwarded-user', trustProxy: [proxy] }))

  const asAnn = {
    'x-forwarded-user': 'ann@example.com',
    'x-forwarded-host': 'console.example',
    'x-forwarded-proto': 'https',
  }

  test('a request through the proxy acts under the name in its header, under any host name', async () => {
    const headers = { ...asAnn, host: 'console.example' }
    const post = (more: Record<string, string>) =>
      served.ask('/change', {
        method: 'POST',
        from: proxy,
        headers: { ...asForm('https://console.example'), ...more },
      })
    expect(await post(headers)).toMatchObject({ status: 303 })
    expect(await post({ ...headers, host: '10.0.0.5:9465' })).toMatchObject({ status: 303 }) // as nginx sets the Host
    expect(served.changes.splice(0)).toEqual(['operator ann@example.com', 'operator ann@example.com'])
    expect(await post({ ...headers, 'sec-fetch-site': 'cross-site' })).toMatchObject({ status: 403 })
    expect(served.changes).toEqual([])
  })

  test.each(['127.0.0.1', '127.0.0.8'])('a request from %s is refused even with the proxy’s headers', async (from) => {
    for (const path of ['/change', '/overview/version', '/assets/console.js']) {
      const answered = await served.ask(path, { from, headers: { ...asAnn, 'x-forwarded-for': proxy } })
      expect(answered).toMatchObject({ status: 403 })
      expect(answered.text).toContain('answers only its proxy')
    }
  })

  test.each<[string, Record<string, string | string[]>]>([
    ['no name', {}],
    ['an empty name', { 'x-forwarded-user': ' ' }],
    ['two names', { 'x-forwarded-user': ['ann', 'eve'] }],
    ['a name that is too long', { 'x-forwarded-user': 'a'.repeat(101) }],
  ])('a request through the proxy with %s is refused', async (_, headers) => {
    const answered = await served.ask('/change', { from: proxy, headers })
    expect(answered).toMatchObject({ status: 401 })
    expect(answered.text).toContain('The proxy did not name the user')
  })

  test('a name is read as UTF-8', async () => {
    const name = Buffer.from('Zoë').toString('latin1')
    const { text } = await served.ask('/change', { from: proxy, headers: { 'x-forwarded-user': name } })
    expect(text).toContain('operator Zoë')
  })
})
