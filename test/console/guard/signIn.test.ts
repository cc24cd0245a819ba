import { once } from 'node:events'
import { connect } from 'node:net'
import type { Session } from 'fastify'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { hashPassword } from '../../../src/console/guard/passwordHash.ts'
import { NewestSessions } from '../../../src/console/guard/signIn.ts'
import { openForFile } from '../../support/openForFile.ts'
import { asForm, type Visitor, visit } from '../openConsole.ts'
import { openGuarded } from './openGuarded.ts'

/** A console that asks for a password. */

const right = 'correct horse battery staple'
const hash = await hashPassword(right)

const served = openForFile(() => openGuarded({ password: hash }))

const signIn = (visitor: Visitor, fields: Record<string, string> = {}) =>
  visitor.post('/login', { name: 'ann', password: right, ...fields })

/** A browser on an address of its own, because tries are counted by address. */
let addresses = 0
const newVisitor = ({ url } = served) => visit(url, `127.0.1.${++addresses}`)

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

test('before the sign-in, a form changes nothing', async () => {
  const answered = await newVisitor().post('/change')
  expect(answered).toMatchObject({ status: 401 })
  expect(answered.text).toContain('You are no longer signed in. Nothing was changed.')
  expect(served.changes).toEqual([])
})

test('a password of more than 8 kB gets 413', async () => {
  const answered = await signIn(newVisitor(), { password: 'x'.repeat(9_000) })
  expect(answered).toMatchObject({ status: 413 })
  expect(answered.headers['set-cookie']).toBeUndefined()
})

describe('an operator who gives the password', () => {
  test('gets the page that was asked for, acts under the given name, and can sign out', async () => {
    const visitor = newVisitor()
    const to = /name="to" value="([^"]+)"/.exec((await visitor.get('/change?a=1')).text)?.[1] ?? ''
    const answered = await signIn(visitor, { name: ' Ann  Ä. ', to })
    expect(answered).toMatchObject({ status: 303, headers: { location: '/change?a=1' } })
    const cookie = answered.headers['set-cookie']?.[0]
    expect(cookie).toMatch(/^outboxd_console_[0-9a-f]{8}=[^;]+; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/)
    expect(await visitor.post('/change')).toMatchObject({ status: 303 })
    expect(served.changes.splice(0)).toEqual(['operator Ann Ä.'])

    const kept = new Map(visitor.cookies)
    expect(await visitor.post('/logout')).toMatchObject({ status: 303, headers: { location: '/login' } })
    expect(await visitor.get('/change')).toMatchObject({ status: 401 })
    for (const [name, value] of kept) visitor.cookies.set(name, value)
    expect(await visitor.get('/change')).toMatchObject({ status: 401 }) // the session itself is over, not only its cookie
  })

  test('is signed out after 12 hours, however often pages are read', async () => {
    const visitor = newVisitor()
    await signIn(visitor)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 12 * 3_600_000 - 60_000 })
    onTestFinished(() => void vi.useRealTimers())
    expect(await visitor.get('/change')).toMatchObject({ status: 200 })
    vi.setSystemTime(Date.now() + 61_000)
    expect(await visitor.get('/change')).toMatchObject({ status: 401 })
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
    expect((await signIn(newVisitor(), { to })).headers.location).toBe('/')
  })

  test.each([
    '',
    '   ',
    'a'.repeat(101),
    'a\u0007b',
    'ann\u202Enna',
  ])('needs a valid name, which %j is not', async (name) => {
    expect(await signIn(newVisitor(), { name })).toMatchObject({ status: 400 })
  })
})

describe('a cookie', () => {
  test.each<[string, () => Promise<Record<string, string>>]>([
    [
      'of another console',
      async () => {
        await using other = await openGuarded({ password: hash })
        const visitor = newVisitor(other)
        await signIn(visitor)
        expect(await visitor.get('/change')).toMatchObject({ status: 200 })
        return { cookie: `${await cookieName()}=${sessionIn(visitor)[1]}` }
      },
    ],
    ['that an attacker made', async () => ({ cookie: `${await cookieName()}=abc.def` })],
    ['that is not signed', async () => ({ cookie: `${await cookieName()}=abc` })],
    ['of nonsense', async () => ({ cookie: `${await cookieName()}=%ff%00; ;;=;` })],
  ])('%s is not a session', async (_, headers) => {
    expect(await served.ask('/change', { headers: await headers() })).toMatchObject({ status: 401 })
  })
})

test('a link from another site opens the page for a signed-in operator', async () => {
  const fromElsewhere = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  const visitor = newVisitor()
  await signIn(visitor)
  const headers = { ...fromElsewhere, cookie: sessionIn(visitor).join('=') }
  expect(await served.ask('/change', { headers })).toMatchObject({ status: 200 })
})

test('with --read-only an operator can sign in and out, and change nothing', async () => {
  await using readOnly = await openGuarded({ password: hash, isReadOnly: true })
  const visitor = newVisitor(readOnly)
  expect(await signIn(visitor)).toMatchObject({ status: 303 })
  expect(await visitor.post('/change')).toMatchObject({ status: 403 })
  expect(await visitor.post('/logout')).toMatchObject({ status: 303 })
  expect(readOnly.changes).toEqual([])
})

test('behind an HTTPS proxy the cookie is Secure, and the log has the client’s address', async () => {
  await using proxied = await openGuarded({ password: hash, trustProxy: ['127.0.0.7'] })
  const ask = async (from: string) => {
    const body = new URLSearchParams({ name: 'ann', password: right }).toString()
    const headers = {
      ...asForm('https://console.example'),
      host: 'localhost',
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '10.9.9.9',
    }
    return proxied.ask('/login', { method: 'POST', from, headers, body })
  }
  const cookies = (await ask('127.0.0.7')).headers['set-cookie'] ?? []
  expect(cookies).toHaveLength(1)
  for (const cookie of cookies) expect(cookie).toContain('; Secure; ')
  expect(proxied.said.at(-1)).toBe('operator ann signed in to the console from 10.9.9.9')
  expect(await ask('127.0.0.8')).toMatchObject({ status: 403 }) // its Origin differs from its Host, and its forwarded headers are not trusted
})

test.each([
  '/x/..//evil.test',
  '/.//evil.test',
  '/%2e%2e//evil.test',
])('after the sign-in an operator is not redirected to %s', async (to) => {
  const { headers } = await signIn(newVisitor(), { to })
  expect(headers.location).toBe('/')
})

test('five wrong passwords from an address keep out only that address', async () => {
  await using attacked = await openGuarded({ password: hash })
  const eve = visit(attacked.url)
  for (let i = 0; i < 20; i++) await signIn(eve, { name: 'eve', password: `wrong ${i}` })
  expect(await signIn(eve)).toMatchObject({ status: 429 })
  expect(await signIn(newVisitor(attacked))).toMatchObject({ status: 303 })
})

test('signing in again ends the former session', async () => {
  const ann = newVisitor()
  await signIn(ann)
  const cookie = sessionIn(ann).join('=')
  expect(await signIn(ann)).toMatchObject({ status: 303 })
  expect(await ann.get('/change')).toMatchObject({ status: 200 })
  expect(await served.ask('/change', { headers: { cookie } })).toMatchObject({ status: 401 })
})

test('all addresses together have thirty tries a minute, and the addresses of an IPv6 net count as one', async () => {
  const proxy = { trustProxy: ['127.0.0.7'], password: hash }
  const tries = async (addresses: string[]) => {
    await using attacked = await openGuarded(proxy)
    const body = new URLSearchParams({ name: 'eve', password: 'wrong' }).toString()
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
      return attack(attacked.url, own)
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
async function attack(url: string, passwords: readonly string[]): Promise<number[]> {
  const { hostname, port, host } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), localAddress: '127.0.0.66' })
  const headers = Object.entries({ host, ...asForm(url) }).map(([name, value]) => `${name}: ${value}\r\n`)
  const statuses: number[] = []
  let rest = '' // may contain the beginning of an answer that continues in the next chunk
  for (let next = 0; next < passwords.length; next += sentAtOnce) {
    for (const password of passwords.slice(next, next + sentAtOnce)) {
      const body = new URLSearchParams({ name: 'eve', password }).toString()
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

const sessionIn = ({ cookies }: Visitor) => [...cookies][0] ?? ['', '']

/** The name of the session's cookie of `served`. */
async function cookieName(): Promise<string> {
  const visitor = newVisitor()
  await signIn(visitor)
  return sessionIn(visitor)[0]
}

const done = () => {}
const sessionOf = (name: string) => ({ name, cookie: {}, request: { password: 'secret' } }) as unknown as Session

function kept(store: NewestSessions, id: string): unknown {
  let found: unknown
  store.get(id, (_, session) => {
    found = session
  })
  return found
}

test('the oldest of more than a thousand sessions goes, so that a script with the password fills no memory', () => {
  const store = new NewestSessions()
  for (let n = 0; n <= 1_000; n++) store.set(String(n), sessionOf(`operator ${n}`), done)
  expect(kept(store, '0')).toBe(null)
  expect(kept(store, '1')).toMatchObject({ name: 'operator 1' })
  expect(kept(store, '1000')).toMatchObject({ name: 'operator 1000' })
})

test('a session keeps nothing of the request that signed it in, which had the password', () => {
  const store = new NewestSessions()
  store.set('1', sessionOf('ann'), done)
  expect(kept(store, '1')).toEqual({ name: 'ann', cookie: {} })
  store.destroy('1', done)
  expect(kept(store, '1')).toBe(null)
})
