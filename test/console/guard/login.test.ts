import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashPassword } from '../../../src/console/guard/passwordHash.ts'
import { asForm, tokenIn, type Visitor, visit } from '../openConsole.ts'
import { type Guarded, openGuarded } from './openGuarded.ts'

/** A console that asks for a password. */

const right = 'correct horse battery staple'
const hash = await hashPassword(right)

let served: Guarded
beforeAll(async () => {
  served = await openGuarded({ password: hash })
})
afterAll(() => served[Symbol.asyncDispose]())

const signIn = (visitor: Visitor, fields: Record<string, string> = {}) =>
  visitor.post('/login', { name: 'ann', password: right, ...fields }, '/login')

test('before the sign-in, every page is the sign-in page, and only its style and script are served', async () => {
  for (const path of ['/', '/change', '/nowhere', '/records/1', '/overview/version']) {
    const { status, text: shown } = await served.ask(path)
    expect({ path, status }).toEqual({ path, status: 401 })
    expect(shown).toContain('<h1>Sign in</h1>')
    expect(shown).not.toContain('<nav')
  }
  for (const path of ['/assets/console.css', '/assets/console.js'])
    expect(await served.ask(path)).toMatchObject({ status: 200 })
})

test('before the sign-in, a form changes nothing, even with the token of the sign-in page', async () => {
  const csrf = tokenIn(await served.ask('/login'))
  const body = new URLSearchParams({ csrf }).toString()
  const answered = await served.ask('/change', { method: 'POST', headers: asForm(served.url), body })
  expect(answered).toMatchObject({ status: 401 })
  expect(answered.text).toContain('You are no longer signed in. Nothing was changed.')
  expect(served.changes).toEqual([])
})

test('a password of more than 8 kB gets 413', async () => {
  const answered = await signIn(visit(served.url), { password: 'x'.repeat(9_000) })
  expect(answered).toMatchObject({ status: 413 })
  expect(answered.headers['set-cookie']).toBeUndefined()
})

describe('an operator who gives the password', () => {
  test('gets the page that was asked for, acts under the given name, and can sign out', async () => {
    const visitor = visit(served.url)
    const to = /name="to" value="([^"]+)"/.exec((await visitor.get('/change?a=1')).text)?.[1] ?? ''
    const answered = await signIn(visitor, { name: ' Ann  Ä. ', to })
    expect(answered).toMatchObject({ status: 303, headers: { location: '/change?a=1' } })
    const [cookie = ''] = answered.headers['set-cookie'] ?? []
    expect(cookie).toMatch(/^outboxd_console_\d+=[^;]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/)
    expect(await visitor.post('/change', {}, '/change')).toMatchObject({ status: 303 })
    expect(served.changes.splice(0)).toEqual(['operator Ann Ä.'])

    const kept = new Map(visitor.cookies)
    expect(await visitor.post('/logout', {}, '/change')).toMatchObject({ status: 303, headers: { location: '/login' } })
    expect(await visitor.get('/change')).toMatchObject({ status: 401 })
    for (const [name, value] of kept) visitor.cookies.set(name, value)
    expect(await visitor.get('/change')).toMatchObject({ status: 401 }) // the session itself is over, not only its cookie
  })

  test.each([
    '//evil.example/',
    'https://evil.example/',
    '/\\evil.example',
    'javascript:alert(1)',
    '\t//evil.example',
    '/login',
    '',
  ])('is not redirected to %j', async (to) => {
    expect((await signIn(visit(served.url), { to })).headers.location).toBe('/')
  })

  test.each([
    '',
    '   ',
    'a'.repeat(101),
    'a\u0007b',
    'ann\u202Enna',
  ])('needs a valid name, which %j is not', async (name) => {
    expect(await signIn(visit(served.url), { name })).toMatchObject({ status: 400 })
  })
})

describe('a cookie', () => {
  test.each<[string, () => Promise<Record<string, string>>]>([
    [
      'of another console',
      async () => {
        await using other = await openGuarded({ password: hash })
        const visitor = visit(other.url)
        await signIn(visitor)
        expect(await visitor.get('/change')).toMatchObject({ status: 200 })
        return cookieHeader(visitor)
      },
    ],
    ['that an attacker made', async () => ({ cookie: `${cookieName()}=abc.def` })],
    ['that is not signed', async () => ({ cookie: `${cookieName()}=abc` })],
    ['of nonsense', async () => ({ cookie: `${cookieName()}=%ff%00; ;;=;` })],
  ])('%s is not a session', async (_, headers) => {
    expect(await served.ask('/change', { headers: await headers() })).toMatchObject({ status: 401 })
  })

  test('of one signed-in operator does not carry the token of another', async () => {
    const [ann, bob] = [visit(served.url), visit(served.url)]
    await signIn(ann)
    await signIn(bob, { name: 'bob' })
    const csrf = tokenIn(await ann.get('/change'))
    const body = new URLSearchParams({ csrf }).toString()
    const headers = { ...asForm(served.url), ...cookieHeader(bob) }
    expect(await served.ask('/change', { method: 'POST', headers, body })).toMatchObject({ status: 403 })
    expect(served.changes).toEqual([])
  })
})

test('a link from another site makes the browser ask again, so that a signed-in operator sees the page', async () => {
  const fromElsewhere = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  // The browser does not send a strict cookie here. It sends the cookie when the returned page refreshes itself.
  const { status, headers } = await served.ask('/change', { headers: fromElsewhere })
  expect({ status, refresh: headers.refresh }).toEqual({ status: 200, refresh: '0' })
})

test('with --read-only an operator can sign in and out, and change nothing', async () => {
  await using readOnly = await openGuarded({ password: hash, isReadOnly: true })
  const visitor = visit(readOnly.url)
  expect(await signIn(visitor)).toMatchObject({ status: 303 })
  expect(await visitor.post('/change', {}, '/change')).toMatchObject({ status: 403 })
  expect(await visitor.post('/logout', {}, '/change')).toMatchObject({ status: 303 })
  expect(readOnly.changes).toEqual([])
})

test('behind an HTTPS proxy the cookie is Secure, and the log has the client’s address', async () => {
  await using proxied = await openGuarded({ password: hash, trustProxy: ['127.0.0.7'] })
  const ask = async (from: string) => {
    const csrf = tokenIn(await proxied.ask('/login', { from }))
    const body = new URLSearchParams({ csrf, name: 'ann', password: right }).toString()
    const headers = {
      ...asForm('https://console.example'),
      host: 'localhost',
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '10.9.9.9',
    }
    return proxied.ask('/login', { method: 'POST', from, headers, body })
  }
  expect((await ask('127.0.0.7')).headers['set-cookie']?.[0]).toContain('; Secure; ')
  expect(proxied.said.at(-1)).toBe('operator ann signed in to the console from 10.9.9.9')
  expect(await ask('127.0.0.8')).toMatchObject({ status: 403 }) // its Origin differs from its Host, and its forwarded headers are not trusted
})

test.each([
  '/x/..//evil.test',
  '/.//evil.test',
  '/%2e%2e//evil.test',
])('after the sign-in an operator is not redirected to %s', async (to) => {
  const { headers } = await signIn(visit(served.url), { to })
  expect(headers.location).toBe('/')
})

test('five wrong passwords from the same address do not keep out a browser that has signed in before', async () => {
  await using attacked = await openGuarded({ password: hash })
  const ann = visit(attacked.url)
  await signIn(ann)
  expect([...ann.cookies.keys()]).toContainEqual(expect.stringMatching(/^outboxd_console_device_\d+$/))
  await ann.post('/logout', {}, '/change')
  const eve = visit(attacked.url)
  for (let i = 0; i < 20; i++) await signIn(eve, { name: 'eve', password: `wrong ${i}` })
  expect(await signIn(eve)).toMatchObject({ status: 429 })
  for (const made of ['abc', `${'a'.repeat(24)}.${'b'.repeat(43)}`]) {
    eve.cookies.set(`outboxd_console_device_${new URL(attacked.url).port}`, made)
    expect(await signIn(eve)).toMatchObject({ status: 429 })
  }
  expect(await signIn(ann)).toMatchObject({ status: 303 })
})

test('the device cookie gives only tries, not a session, and survives a restart of the console', async () => {
  const ann = visit(served.url)
  await signIn(ann)
  const [, device = ''] = [...ann.cookies].find(([name]) => name.includes('device')) ?? []
  await using other = await openGuarded({ password: hash })
  const known = visit(other.url)
  known.cookies.set(`outboxd_console_device_${new URL(other.url).port}`, device)
  expect(await known.get('/change')).toMatchObject({ status: 401 })
  const eve = visit(other.url)
  for (let i = 0; i < 20; i++) await signIn(eve, { name: 'eve', password: `wrong ${i}` })
  expect(await signIn(known)).toMatchObject({ status: 303 })
})

test('a session gets at most 10 answers at once, and other sessions are not affected', async () => {
  await using busy = await openGuarded({ password: hash })
  const [ann, bob] = [visit(busy.url), visit(busy.url)]
  await signIn(ann)
  await signIn(bob, { name: 'bob' })
  const asked = Array.from({ length: 60 }, () => ann.get('/slow'))
  const refused = await Promise.race(asked)
  expect(refused).toMatchObject({ status: 429, text: expect.stringContaining('Try again in a moment') })
  expect(await bob.get('/change')).toMatchObject({ status: 200 })
  busy.answerSlow()
  const statuses = (await Promise.all(asked)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(10)
  expect(await ann.get('/change')).toMatchObject({ status: 200 })
})

test('signing in again ends the former session', async () => {
  const ann = visit(served.url)
  await signIn(ann)
  const former = new Map(ann.cookies)
  const csrf = tokenIn(await served.ask('/login'))
  const body = new URLSearchParams({ csrf, name: 'ann', password: right }).toString()
  const cookie = [...former].map(([name, value]) => `${name}=${value}`).join('; ')
  const token = tokenIn(await ann.get('/change'))
  const again = await served.ask('/login', {
    method: 'POST',
    headers: { ...asForm(served.url), cookie },
    body: body.replace(encodeURIComponent(csrf), encodeURIComponent(token)),
  })
  expect(again).toMatchObject({ status: 303 })
  expect(await served.ask('/change', { headers: { cookie } })).toMatchObject({ status: 401 })
})

test('a correct password uses up no try', async () => {
  await using open = await openGuarded({ password: hash })
  for (let i = 0; i < 10; i++) expect(await signIn(visit(open.url))).toMatchObject({ status: 303 })
})

test('all addresses together have thirty tries a minute, and the addresses of an IPv6 net count as one', async () => {
  const proxy = { trustProxy: ['127.0.0.7'], password: hash }
  const tries = async (addresses: string[]) => {
    await using attacked = await openGuarded(proxy)
    const csrf = tokenIn(await attacked.ask('/login', { from: '127.0.0.7' }))
    const body = new URLSearchParams({ csrf, name: 'eve', password: 'wrong' }).toString()
    const made: number[] = []
    for (const address of addresses) {
      const headers = { ...asForm(attacked.url), 'x-forwarded-for': address }
      made.push((await attacked.ask('/login', { method: 'POST', headers, body, from: '127.0.0.7' })).status)
    }
    return made.filter((status) => status === 401).length
  }
  expect(await tries(Array.from({ length: 40 }, (_, i) => `10.0.${i}.1`))).toBe(30)
  expect(await tries(Array.from({ length: 10 }, (_, i) => `2001:db8::${i}`))).toBe(5)
})

/** LONG=1 makes 10,000 tries (`npm run test:long`). */
const tried = process.env.LONG ? 10_000 : 1_000

test(`${tried} tries of passwords do not get in, and the console keeps answering`, async () => {
  await using attacked = await openGuarded({ password: hash })
  const ann = visit(attacked.url)
  await signIn(ann)
  const csrf = tokenIn(await attacked.ask('/login'))
  const tries = Array.from({ length: tried }, (_, i) => (i % 100 === 99 ? right : `wrong ${i}`))
  let isOver = false
  let slowestMs = 0
  const looking = (async () => {
    while (!isOver) {
      const beganMs = performance.now()
      expect(await ann.get('/change')).toMatchObject({ status: 200 })
      slowestMs = Math.max(slowestMs, performance.now() - beganMs)
    }
  })()
  const each = await Promise.all(
    Array.from({ length: 10 }, (_, i) => {
      const own = tries.slice((tried / 10) * i, (tried / 10) * (i + 1))
      return attack(attacked.url, csrf, own)
    }),
  )
  isOver = true
  await looking
  const count = (status: number) => each.flat().filter((one) => one === status).length
  expect({ in: count(303), answered: count(429) + count(401) }).toEqual({ in: 0, answered: tried })
  // Each minute allows five more tries, and a busy machine may take longer than a minute.
  expect([5, 10, 15]).toContain(count(401))
  expect(attacked.said.filter((line) => line.includes('wrong password'))).toHaveLength(count(401))
  expect(slowestMs).toBeLessThan(20_000)
  // From another address, sign-in still works.
  expect(await signIn(visit(attacked.url))).toMatchObject({ status: 303 })
})

const sentAtOnce = 50

/** Tries passwords on one connection, `sentAtOnce` at a time. @returns the status of each */
async function attack(url: string, csrf: string, passwords: readonly string[]): Promise<number[]> {
  const { hostname, port, host } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), localAddress: '127.0.0.66' })
  const headers = Object.entries({ host, ...asForm(url) }).map(([name, value]) => `${name}: ${value}\r\n`)
  const statuses: number[] = []
  let rest = '' // may contain the beginning of an answer that continues in the next chunk
  for (let next = 0; next < passwords.length; next += sentAtOnce) {
    for (const password of passwords.slice(next, next + sentAtOnce)) {
      const body = new URLSearchParams({ csrf, name: 'eve', password }).toString()
      socket.write(`POST /login HTTP/1.1\r\n${headers.join('')}content-length: ${body.length}\r\n\r\n${body}`)
    }
    while (statuses.length < Math.min(next + sentAtOnce, passwords.length)) {
      const seen = `${rest}${(await once(socket, 'data'))[0]}`
      for (const [, status] of seen.matchAll(/HTTP\/1\.1 (\d{3})/g)) statuses.push(Number(status))
      rest = seen.slice(1 - 'HTTP/1.1 200'.length)
    }
  }
  socket.destroy()
  return statuses
}

const cookieName = () => `outboxd_console_${new URL(served.url).port}`
const cookieHeader = ({ cookies }: Visitor) => ({
  cookie: [...cookies].map(([name, value]) => `${name.replace(/\d+$/, new URL(served.url).port)}=${value}`).join('; '),
})
