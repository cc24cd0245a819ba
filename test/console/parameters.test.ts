import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Fixture, failedE003, openFixture } from '../commands/fixture.ts'
import { type OpenedConsole, openConsole } from './openConsole.ts'

/** Any address or form gets a page or a message about its mistake, never a 5xx. */

let fixture: Fixture
let served: OpenedConsole
let id: string
beforeAll(async () => {
  fixture = await openFixture()
  await fixture.reset()
  served = await openConsole(fixture.context())
  id = await fixture.end(failedE003, { outboxId: '1', key: 'K' })
})
afterAll(async () => {
  await served[Symbol.asyncDispose]()
  await fixture[Symbol.asyncDispose]()
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
  '/audit': ['since', 'until', 'who', 'key', 'record', 'event'],
  '/audit.csv': ['since', 'until', 'key', 'record'],
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
  const paths = values.flatMap((value) =>
    ['', '/payload.txt'].map((end) => `/records/${encodeURIComponent(value)}${end}`),
  )
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
    const { status } = await served.post(path, fields, '/pause')
    if (status >= 500) faults.push({ path, fields })
  }
  expect(faults).toEqual([])
})
