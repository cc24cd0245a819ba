import { expect, test } from 'vitest'
import { type HistoryReading, judgeHistory, type LedgerStandby } from '../../../src/ledger/history/judgeHistory.ts'

const same: HistoryReading = { isLost: false, recoveredAtMs: null, isNew: false, difference: null, missing: null }
const judge = (reading: Partial<HistoryReading> | null, knows = true, standby: LedgerStandby = 'none') =>
  judgeHistory(reading && { ...same, ...reading }, { knows, standby }).kind

test('a ledger in which a daemon finds all stands', () => {
  expect([judge({}), judge({}, false)]).toEqual(['stands', 'stands'])
})

test.each([
  'system',
  'database',
  'table',
  'writer',
  'timeline',
] as const)('a ledger with another %s may have lost data, whoever looks', (difference) => {
  expect([judge({ difference }), judge({ difference }, false)]).toEqual(['lost', 'lost'])
})

test('the detail of lost data says for each difference something of its own', () => {
  const details = (['system', 'database', 'table', 'writer', 'timeline'] as const).map((difference) => {
    const verdict = judgeHistory({ ...same, difference }, { knows: true, standby: 'none' })
    return verdict.kind === 'lost' ? verdict.detail : null
  })
  expect(details).toEqual(details.map(() => expect.stringMatching(/./)))
  expect(new Set(details).size).toBe(5)
})

test.each(['heartbeat', 'request'] as const)('a ledger without the daemon’s %s has lost data', (missing) => {
  expect(judge({ missing })).toBe('lost')
  expect(judge({ missing, difference: 'timeline' }, true, 'synchronous')).toBe('lost')
})

test('only a new timeline of a declared standby is taken, and only by a daemon that knows the old one', () => {
  expect(judge({ difference: 'timeline' }, true, 'synchronous')).toBe('promoted')
  expect(judge({ difference: 'timeline' }, false, 'synchronous')).toBe('others')
  for (const difference of ['system', 'database', 'table', 'writer'] as const)
    expect(judge({ difference }, true, 'synchronous')).toBe('lost')
})

test('a ledger without an identity is new, unless a daemon knows an older one', () => {
  expect([judge({ isNew: true }, false), judge({ isNew: true })]).toEqual(['new', 'lost'])
})

test('a ledger whose row is gone has lost data, and one that is paused waits for an operator', () => {
  expect(judge(null)).toBe('lost')
  expect(judge({ isLost: true, difference: 'system', missing: 'heartbeat' })).toBe('waits')
})
