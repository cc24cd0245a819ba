import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { command as migrate } from '../../src/commands/migrate.ts'
import { explainConsoleError, RequestRefused } from '../../src/console/errors.ts'
import { DatabaseUnusable } from '../../src/postgres/database.ts'
import { openFixture } from '../commands/fixture.ts'
import { lacksBrowser, openBrowser } from '../support/browser.ts'
import { testContext } from '../support/context.ts'
import { createDatabase } from '../support/database.ts'
import { type FaultProxy, startFaultProxy } from '../support/faultProxy.ts'
import { openForFile } from '../support/openForFile.ts'
import { until } from '../support/until.ts'
import { openConsole } from './openConsole.ts'

const coded = (code: string, message: string) => Object.assign(new Error(message), { code })
const unusable = (cause: unknown) => new DatabaseUnusable('postgres://a:secret@db.example/erp', 'no', cause)

test.each<[string, Error, Partial<ReturnType<typeof explainConsoleError>>]>([
  [
    'a database that is away',
    coded('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:5432'),
    { status: 503, isPassing: true },
  ],
  ['a database that shuts down', coded('57P01', 'terminating connection'), { status: 503, isPassing: true }],
  ['the outbox’s database that is away', unusable(coded('08006', 'lost')), { status: 503, isPassing: true }],
  ['a ledger of another version', coded('42703', 'column "x" does not exist'), { status: 503, isPassing: true }],
  [
    'a statement timeout, which is not retried by itself',
    coded('57014', 'canceling statement due to statement timeout'),
    { status: 503, isPassing: false },
  ],
  [
    'a lock on the ledger’s tables',
    coded('55P03', 'canceling statement due to lock timeout'),
    { status: 503, isPassing: true },
  ],
  [
    'a lock on the outbox',
    unusable(coded('55P03', 'canceling statement due to lock timeout')),
    { status: 503, isPassing: false },
  ],
  ['a refused request', new RequestRefused(403, 'no'), { status: 403, isPassing: false, words: 'no' }],
  [
    'an error in our code',
    new TypeError('x is undefined'),
    { status: 500, isPassing: false, words: 'X is undefined.' },
  ],
])('the console explains %s', (_, error, trouble) => {
  expect(explainConsoleError(error)).toMatchObject(trouble)
  expect(explainConsoleError(error).words).not.toContain('secret')
})

/** If a database is away, locked or not migrated, the pages say so in plain words, and recover by themselves. */

const fixture = openForFile(openFixture)
let proxy: FaultProxy
let proxied: string
beforeAll(async () => {
  const url = new URL(fixture.ledger.url)
  proxy = await startFaultProxy({ target: { host: url.hostname, port: Number(url.port) } })
  proxied = Object.assign(new URL(url), { host: `${proxy.host}:${proxy.port}` }).href
})
afterAll(() => proxy.close())

const variables = (url: string) => ({ DATABASE_URL: url })
const pages = ['/', '/records', '/records/1', '/audit']

/** Waits until the version that an open page asks for has this status. */
const isTold = (url: string, status: 200 | 503) =>
  until(
    () => fetch(`${url}/overview/version`),
    (answer) => answer.status === status,
  )

test('if the ledger was not migrated, each page says what to do, and works after the migration', async () => {
  await using database = await createDatabase('template0')
  await using served = await openConsole(testContext(variables(database.url)))
  for (const path of pages) {
    const { status, text } = await served.get(path)
    expect({ path, status }).toEqual({ path, status: 503 })
    expect(text).toContain('Run <code>outboxd migrate</code> first')
    expect(text).toContain('data-watch="/overview/version"')
  }
  await isTold(served.url, 503)
  expect(await migrate.action(testContext(variables(database.url)), { outbox: true })).toBe(0)
  await isTold(served.url, 200)
  expect(await served.get('/')).toMatchObject({ status: 200 })
})

describe('a database that cannot be reached', () => {
  test('at the start of the console is reported, and the console waits for it', async () => {
    await proxy.setFault({ kind: 'refuse' })
    await using served = await openConsole(testContext(variables(proxied)))
    const { status, text } = await served.get('/records')
    expect(status).toBe(503)
    expect(text).toContain(`The database of DATABASE_URL at ${proxy.host}:${proxy.port}`)
    expect(text).toContain('ECONNREFUSED')
    await until(served.context.messages, (said) => said.includes('ECONNREFUSED'))
    await proxy.setFault(null)
    expect(await served.get('/records')).toMatchObject({ status: 200 })
  })

  test('later is reported on open and new pages, without the password, and they recover', async () => {
    await using served = await openConsole(testContext(variables(proxied)))
    await isTold(served.url, 200)
    await proxy.setFault({ kind: 'refuse' })
    await isTold(served.url, 503)
    const { status, text } = await served.get('/')
    expect(status).toBe(503)
    expect(text).toContain('A database cannot be used')
    expect(`${text}${served.context.messages()}`).not.toContain(`:${new URL(proxied).password}@`)
    await proxy.setFault(null)
    await until(
      () => served.get('/'),
      (answered) => answered.status === 200,
    )
  })
})

test.skipIf(lacksBrowser('a page that a database kept away'))(
  'in a browser, a page that was opened while the database was away recovers by itself',
  async () => {
    await proxy.setFault({ kind: 'refuse' })
    await using served = await openConsole(testContext(variables(proxied)))
    const browser = await openBrowser()
    onTestFinished(() => browser.close())
    const page = await browser.newPage()
    await page.goto(`${served.url}/audit`)
    expect(await page.textContent('h1')).toBe('A database cannot be used')
    await isTold(served.url, 503)
    await proxy.setFault(null)
    await page.getByRole('heading', { name: 'Activity' }).waitFor()
    expect(page.url()).toBe(`${served.url}/audit`)
  },
)

test('if the ledger is locked, open and new pages say so within 12 s, and recover', async () => {
  await using served = await openConsole(testContext(variables(fixture.ledger.url)))
  await isTold(served.url, 200)
  const locking = await fixture.ledger.pool.connect()
  onTestFinished(() => locking.release())
  await locking.query('begin; lock table outboxd.submission in access exclusive mode')
  const beganMs = performance.now()
  await isTold(served.url, 503)
  const { status, text } = await served.get('/records')
  expect(performance.now() - beganMs).toBeLessThan(12_000)
  expect(status).toBe(503)
  expect(text).toContain('The ledger does not answer')
  expect(text).toContain('data-watch="/overview/version"')
  await locking.query('rollback')
  await until(
    () => served.get('/'),
    (answered) => answered.status === 200,
  )
})

test('the console stops within 10 s even if pages are open and the database does not answer', async () => {
  const served = await openConsole(testContext(variables(proxied)))
  await isTold(served.url, 200)
  await proxy.setFault({ kind: 'half-open' })
  const asked = served.get('/').catch(() => 'cut off')
  const beganMs = performance.now()
  expect(await served.stop()).toBe(0)
  await asked
  expect(performance.now() - beganMs).toBeLessThan(10_000)
  await proxy.setFault(null)
})
