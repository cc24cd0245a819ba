import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type HistoryReading,
  judgeDataLoss,
  type LedgerStandby,
  type RememberedHistory,
  type RowSearchResult,
} from '../../../src/ledger/history/judgeDataLoss.ts'

const identity = { systemId: '7', timeline: 1, databaseOid: 5, ledgerOid: 6 }
const asAgreed: HistoryReading = {
  agreed: identity,
  agreedAtMs: 1_000,
  isByPerson: false,
  now: identity,
  safeLsn: '0/10',
  markedForMs: 1,
  isPutBack: false,
  hasTarget: false,
  isSynchronous: false,
  isFound: false,
  hasLastClaim: true,
  isPastSeen: true,
  isUnused: false,
  isEmpty: false,
  isStandbyMissed: false,
}
const memory: RememberedHistory = { agreedAtMs: 1_000, timeline: 1 }
const none = { kind: 'none' } as const
const decide = (view: HistoryReading, its: RememberedHistory | null, named: RowSearchResult = none) =>
  judgeDataLoss(view, { memory: its, standby: 'none', named })
const kindOf = (seen: Partial<HistoryReading>, its: RememberedHistory | null = memory) =>
  decide({ ...asAgreed, ...seen }, its).kind
const promoted = { now: { ...identity, timeline: 2 } }

test('the agreed history stands, even if the server hides a part of it from our role', () => {
  expect(kindOf({})).toBe('stands')
  expect(kindOf({ now: { ...identity, systemId: null, timeline: null } })).toBe('stands')
  expect(kindOf({ agreed: { ...identity, systemId: null, timeline: null } })).toBe('stands')
})

test.each([
  ['another cluster', { now: { ...identity, systemId: '8' } }],
  ['another database', { now: { ...identity, databaseOid: 9 } }],
  ['tables made anew', { now: { ...identity, ledgerOid: 9 } }],
  ['another timeline', promoted],
  ['an earlier timeline', { agreed: { ...identity, timeline: 3 } }],
  ['rows of a backup in the tables that stood', { isPutBack: true }],
])('%s is a suspected loss', (_, seen) => {
  expect(decide({ ...asAgreed, ...seen }, memory)).toMatchObject({ kind: 'found' })
})

test('an unused copy of the ledger is accepted, unless a daemon misses its last claim in it', () => {
  const copy = { now: { ...identity, databaseOid: 9 }, isUnused: true }
  expect(kindOf(copy, null)).toBe('agrees')
  expect(kindOf({ ...copy, hasLastClaim: false })).toBe('found')
  expect(kindOf({ ...copy, isUnused: false }, null)).toBe('found')
})

test('an empty ledger is a suspected loss if a row names a transaction, and waits until that is known', () => {
  const empty = { ...asAgreed, isEmpty: true }
  const copy = { ...empty, now: { ...identity, databaseOid: 9 }, isUnused: true }
  for (const view of [empty, copy]) {
    expect(decide(view, null, { kind: 'unknown' })).toEqual({ kind: 'asks' })
    expect(decide(view, null, { kind: 'named', outboxId: '17' })).toMatchObject({
      kind: 'found',
      detail: expect.stringContaining('row 17 '),
    })
  }
  expect(decide(empty, null, none).kind).toBe('stands')
  expect(decide({ ...empty, isByPerson: true }, null, { kind: 'named', outboxId: '17' }).kind).toBe('stands')
  expect(decide(asAgreed, null, { kind: 'unknown' }).kind).toBe('stands')
})

test('a promoted standby is accepted only if LEDGER_STANDBY declares it and nothing else indicates a loss', () => {
  const agrees = (seen: Partial<HistoryReading>, standby: LedgerStandby = 'synchronous', its = memory) =>
    judgeDataLoss({ ...asAgreed, ...promoted, ...seen }, { memory: its, standby, named: none }).kind === 'agrees'
  expect(agrees({})).toBe(true)
  expect(agrees({}, 'none')).toBe(false)
  expect(agrees({ hasTarget: true })).toBe(false)
  expect(agrees({ markedForMs: 120_001 })).toBe(false)
  expect(agrees({ hasLastClaim: false })).toBe(false)
  expect(agrees({ agreed: { ...identity, timeline: 3 } })).toBe(false)
  expect(agrees({ now: { ...promoted.now, databaseOid: 9 } })).toBe(false)
  expect(agrees({ isFound: true })).toBe(false)
})

test('a running daemon finds a loss by its last claim, the agreement it knows and the length of the log', () => {
  expect(kindOf({ hasLastClaim: false })).toBe('found')
  expect(kindOf({ agreedAtMs: 999 })).toBe('found')
  expect(kindOf({ isPastSeen: false })).toBe('found')
  expect(kindOf({ isPastSeen: false }, null)).toBe('stands')
  // On a different timeline the log is different.
  expect(kindOf({ isPastSeen: false }, { ...memory, timeline: 2 })).toBe('stands')
})

test('what a daemon remembers no longer counts once an operator, not a daemon, agreed to a history', () => {
  expect(kindOf({ hasLastClaim: false, agreedAtMs: 2_000, isByPerson: true })).toBe('stands')
  expect(kindOf({ hasLastClaim: false, agreedAtMs: 2_000 })).toBe('found')
})

test('in any state, daemons go on only in the agreed history or on the promotion of a declared standby', () => {
  const some = fc.record({
    now: fc.constantFrom(identity, promoted.now, { ...identity, systemId: '8' }, { ...identity, ledgerOid: 1 }),
    isPutBack: fc.boolean(),
    hasTarget: fc.boolean(),
    isFound: fc.boolean(),
    hasLastClaim: fc.boolean(),
    isPastSeen: fc.boolean(),
    markedForMs: fc.constantFrom(0, 1e9),
  })
  const standbys = fc.constantFrom<LedgerStandby>('none', 'synchronous')
  fc.assert(
    fc.property(some, fc.constantFrom(null, memory), standbys, (seen, its, standby) => {
      const { kind } = judgeDataLoss({ ...asAgreed, ...seen }, { memory: its, standby, named: none })
      const knowsBetter = its !== null && !seen.hasLastClaim
      if (kind === 'stands') expect(seen).toMatchObject({ now: identity, isPutBack: false, isFound: false })
      if (kind === 'agrees')
        expect({ ...seen, standby }).toMatchObject({
          ...{ now: promoted.now, hasTarget: false, markedForMs: 0, isFound: false, standby: 'synchronous' },
        })
      if (knowsBetter) expect(['found', 'waits']).toContain(kind)
    }),
  )
})
