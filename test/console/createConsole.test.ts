import { beforeAll, describe, expect, test } from 'vitest'
import { failedE003, openFixture } from '../commands/fixture.ts'
import { openForFile } from '../support/openForFile.ts'
import { until } from '../support/until.ts'
import { openConsole } from './openConsole.ts'

const fixture = openForFile(openFixture)
const served = openForFile(() => openConsole(fixture.context()))

test.each([
  ['/', 200],
  ['/records', 200],
  ['/records/1', 404], // no record has that number
  ['/mapping', 200],
  ['/audit', 200],
  ['/system', 200],
  ['/keys', 200],
])('%s is a page, answered %d', async (path, wanted) => {
  const { status, headers, text } = await served.get(path)
  expect({ status, type: headers['content-type'] }).toEqual({ status: wanted, type: 'text/html; charset=utf-8' })
  expect(text).toContain('<h1')
  expect(text).toContain('href="/records"')
})

test('the Overview has the first message of status', async () => {
  await fixture.ledger.capture([{ error: 'x' }])
  // The page of the test before may still be shared.
  await expect.poll(async () => (await served.get('/')).text).toContain('No daemon is running, so nothing is sent')
})

test('the console serves its own style, script and icon, and no other file', async () => {
  const types = {
    'console.css': 'text/css',
    'console.js': 'javascript',
    'keys.js': 'javascript',
    'console.svg': 'image/svg+xml',
  }
  const { text: page } = await served.get('/keys')
  for (const [name, type] of Object.entries(types)) {
    const { status, headers } = await served.get(`/assets/${name}`)
    expect({ name, status }).toEqual({ name, status: 200 })
    expect(headers['content-type']).toContain(type)
    expect(headers['cache-control']).toContain('immutable')
    expect(page).toMatch(new RegExp(`"/assets/${name}\\?[\\w-]{10}"`))
  }
  for (const path of ['/assets/sandbox.js', '/assets/', '/assets/../package.json', '/assets/%2e%2e/package.json'])
    expect(await served.get(path)).toMatchObject({ status: 404 })
})

test('each live page has a version, which changes with its contents', async () => {
  await fixture.reset()
  const id = await fixture.end({ state: 'failed', errorCode: 'E003', error: 'the service was down' })
  for (const path of ['/', `/records/${id}`]) {
    const { text } = await served.get(path)
    const [, watched = '', shown] = /data-watch="([^"]+)" data-version="([^"]+)"/.exec(text) ?? []
    const version = async () => JSON.parse((await served.get(watched)).text).version
    expect(await version()).not.toBe('')
    if (path === '/') continue
    expect(await version()).toBe(shown)
    await fixture.ledger.pool.query('update outboxd.submission set polls = polls + 1 where id = $1', [id])
    await until(version, (told) => told !== shown)
  }
  expect(JSON.parse((await served.get('/records/none/version')).text)).toMatchObject({ version: '' })
})

test.each([
  '/records?key=%00',
  '/records?containing=a%00b',
  '/records/%00',
  '/audit?who=%00',
])('%s gets 400 because it contains U+0000, which Postgres cannot store', async (path) => {
  const { status, text } = await served.get(path)
  expect(status).toBe(400)
  expect(text).toContain('contains the character U+0000')
})

test('a reason with U+0000 is refused and pauses nothing', async () => {
  const { status } = await served.post('/pause', { reason: 'a\0b' })
  expect(status).toBe(400)
  expect((await fixture.ledger.pool.query('select from outboxd.pause')).rowCount).toBe(0)
})

describe('any address or form gets a page or a message about its mistake, never a 5xx', () => {
  let id: string
  beforeAll(async () => {
    await fixture.reset()
    id = await fixture.end(failedE003, { outboxId: '1', key: 'K' })
  })

  const values = [
    ...['9223372036854775808', '9'.repeat(40), '-1', "'\\", '\u202e😀', 'x'.repeat(900)],
    ...['0000-01-01', '9999-12-31', '999999d', '99999999999999999999d', '2026-11-03T10:00+99:99'],
    ...['9999999999999999-999999999999999999', 'f'.repeat(32), `outbox:${'9'.repeat(40)}`],
  ]

  const names = {
    '/records': [
      ...['state', 'code', 'type', 'key', 'since', 'until', 'transaction', 'containing', 'cause', 'limit'],
      'after',
      'before',
    ],
    '/records.csv': ['state', 'key', 'since', 'containing', 'cause', 'after', 'changed'],
    '/audit': ['since', 'until', 'who', 'key', 'record', 'event'],
    '/mapping': ['outbox'],
    '/pause': ['for', 'reason'],
    '/resume': ['all', 'reason'],
  }

  /** The addresses that get a 5xx. */
  async function faultsAt(paths: readonly string[]): Promise<string[]> {
    const faults: string[] = []
    for (const path of paths) if ((await served.get(path)).status >= 500) faults.push(path)
    return faults
  }

  test.each(Object.entries(names))('%s gets no 5xx with any parameters', async (path, fields) => {
    const paths = fields.flatMap((field) =>
      values.map((value) => {
        const query = [[field, value], ...(field === 'event' ? [['act', value]] : [])]
        return `${path}?${new URLSearchParams(query as [string, string][])}`
      }),
    )
    expect(await faultsAt(paths)).toEqual([])
  })

  test('no address of a record gets a 5xx', async () => {
    const paths = values.map((value) => `/records/${encodeURIComponent(value)}`)
    expect(await faultsAt(paths)).toEqual([])
  })

  test.each([
    '9'.repeat(19),
    '99999999999999999999d',
    "x'\\",
    '\u202e😀',
  ])('no form gets a 5xx with %j in its fields', async (value) => {
    const forms: [string, Record<string, string>][] = [
      ['/mapping', { type: value, payload: value }],
      ['/mapping/show', { outbox: value }],
      [`/records/${encodeURIComponent(value)}/show`, {}],
      [`/records/${id}/resolve`, { answer: 'arrived', transaction: value, revision: value, reason: value }],
      [`/records/${id}/resolve`, { answer: 'arrived', transaction: value, revision: '3', unchecked: 'on' }],
      ['/records/choose', { do: 'replay-ticked', id: value }],
      ['/records/choose', { do: 'replay-all', key: value, since: value, limit: value, cause: value }],
      ['/pause', { for: value, reason: value }],
      ['/records/change', { do: 'discard-all', seen: value, reason: 'x' }],
      ['/records/change', { do: 'replay-all', seen: `${id}.${value}`, reason: value }],
    ]
    const faults: unknown[] = []
    for (const [path, fields] of forms) {
      const { status } = await served.post(path, fields)
      if (status >= 500) faults.push({ path, fields })
    }
    expect(faults).toEqual([])
  })
})
