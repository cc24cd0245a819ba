import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  decideHistory,
  type HistoryMemory,
  type HistoryView,
  type NamedRow,
  objectionMs,
  standbyMissedMs,
} from '../../../src/ledger/history/decideHistory.ts'

const identity = { systemId: '7', timeline: 1, databaseOid: 5, ledgerOid: 6 }
const asAgreed: HistoryView = {
  agreed: identity,
  agreedAtMs: 1_000,
  isByPerson: false,
  now: identity,
  safeLsn: '0/10',
  isPastMark: true,
  isPutBack: false,
  hasTarget: false,
  waitsForMs: null,
  isSynchronous: false,
  isMarkDue: false,
  foundForMs: null,
  mayGoOn: false,
  hasLastClaim: true,
  isPastSeen: true,
  hasRecovered: true,
  reachesSettled: true,
  isUnused: false,
  isEmpty: false,
  isPaused: false,
}
const memory: HistoryMemory = { agreedAtMs: 1_000, timeline: 1, hasWatched: true }
const none = { kind: 'none' } as const
const decide = (view: HistoryView, its: HistoryMemory | null, named: NamedRow = none) => decideHistory(view, its, named)
const kindOf = (seen: Partial<HistoryView>, its: HistoryMemory | null = memory) =>
  decide({ ...asAgreed, ...seen }, its).kind
const promoted = { now: { ...identity, timeline: 2 } }

test('a history that is as it was agreed to stands, also where the server does not let our role know all of it', () => {
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
  ['a log that is shorter than the ledger says', { isPastMark: false }],
  ['rows of a backup in the tables that stood', { isPutBack: true }],
])('%s is found, and a person is waited for', (_, seen) => {
  expect(decide({ ...asAgreed, ...seen }, memory)).toMatchObject({ kind: 'found', mayGoOn: false })
})

test('a copy in which nothing has happened yet is new, unless a daemon has seen something happen', () => {
  const copy = { now: { ...identity, databaseOid: 9 }, isUnused: true }
  expect(kindOf(copy, null)).toBe('new')
  expect(kindOf({ ...copy, hasLastClaim: false })).toBe('found')
  expect(kindOf({ ...copy, isUnused: false }, null)).toBe('found')
})

test('in a ledger without records that has a row name a transaction, records are lost: it waits until that is known', () => {
  const empty = { ...asAgreed, isEmpty: true }
  const copy = { ...empty, now: { ...identity, databaseOid: 9 }, isUnused: true }
  for (const view of [empty, copy]) {
    expect(decide(view, null, { kind: 'unknown' })).toEqual({ kind: 'asks' })
    expect(decide(view, null, { kind: 'named', outboxId: '17' })).toMatchObject({
      kind: 'found',
      detail: expect.stringContaining('row 17 '),
      mayGoOn: false,
    })
  }
  expect(decide(empty, null, none).kind).toBe('stands')
  expect(decide({ ...empty, isByPerson: true }, null, { kind: 'named', outboxId: '17' }).kind).toBe('stands')
  expect(decide(asAgreed, null, { kind: 'unknown' }).kind).toBe('stands')
})

test('a standby that was promoted may go on where every claim had been waited for', () => {
  const mayGoOn = (seen: Partial<HistoryView>, its: HistoryMemory | null = memory) => {
    const verdict = decide({ ...asAgreed, ...promoted, ...seen }, its)
    return verdict.kind === 'found' && verdict.mayGoOn
  }
  expect(mayGoOn({ waitsForMs: 1 })).toBe(true)
  expect(mayGoOn({ waitsForMs: 1 }, null)).toBe(true)
  expect(mayGoOn({ waitsForMs: 0 })).toBe(false)
  expect(mayGoOn({ waitsForMs: null })).toBe(false)
  expect(mayGoOn({ waitsForMs: 1, hasTarget: true })).toBe(false)
  expect(mayGoOn({ waitsForMs: 1, hasRecovered: false })).toBe(false)
  expect(mayGoOn({ waitsForMs: 1, reachesSettled: false })).toBe(false)
  expect(mayGoOn({ waitsForMs: 1, hasLastClaim: false })).toBe(false)
  expect(mayGoOn({ waitsForMs: 1, agreed: { ...identity, timeline: 3 } })).toBe(false)
  expect(mayGoOn({ waitsForMs: 1, now: { ...promoted.now, databaseOid: 9 } })).toBe(false)
})

test('it goes on after living daemons had time to object, and not where one knows better', () => {
  const found = { ...promoted, waitsForMs: 60_000, mayGoOn: true }
  expect(kindOf({ ...found, foundForMs: objectionMs - 1 })).toBe('waits')
  expect(kindOf({ ...found, foundForMs: objectionMs })).toBe('goes-on')
  expect(kindOf({ ...found, foundForMs: 0, hasLastClaim: false })).toBe('found')
  expect(kindOf({ ...found, foundForMs: objectionMs, hasLastClaim: false })).toBe('found')
  expect(kindOf({ ...found, mayGoOn: false, foundForMs: 1e9 })).toBe('waits')
  const restoredSince = { ...found, now: { ...promoted.now, databaseOid: 9 } }
  for (const seen of [restoredSince, { ...found, hasTarget: true }])
    expect(decide({ ...asAgreed, ...seen, foundForMs: 1e9 }, memory)).toMatchObject({
      kind: 'found',
      mayGoOn: false,
    })
})

test('it goes on only on the word of a daemon that has looked until the server was gone; without one a person is waited for', () => {
  const found = { ...promoted, waitsForMs: 60_000, mayGoOn: true }
  const ofNone: [Partial<HistoryView>, HistoryMemory | null][] = [
    [{}, null],
    [{}, { ...memory, hasWatched: false }],
    [{}, { ...memory, timeline: 0 }],
    [{ reachesSettled: null }, memory],
  ]
  for (const [seen, its] of ofNone) {
    expect(kindOf({ ...found, ...seen, foundForMs: 29_999 }, its)).toBe('waits')
    expect(decide({ ...asAgreed, ...found, ...seen, foundForMs: 30_000 }, its)).toMatchObject({
      ...{ kind: 'found', mayGoOn: false, detail: expect.stringContaining('no daemon has lived through it') },
    })
  }
  expect(kindOf({ ...found, foundForMs: 1e9 })).toBe('goes-on')
})

test('a daemon that lives knows its last claim, what was agreed to, and how long the log was', () => {
  expect(kindOf({ hasLastClaim: false })).toBe('found')
  expect(kindOf({ agreedAtMs: 999 })).toBe('found')
  expect(kindOf({ isPastSeen: false })).toBe('found')
  expect(kindOf({ isPastSeen: false }, null)).toBe('stands')
  // On another timeline the log is another.
  expect(kindOf({ isPastSeen: false }, { ...memory, timeline: 2 })).toBe('stands')
})

test('what a daemon remembers is over when a person has agreed to what there is, and not when a daemon has', () => {
  expect(kindOf({ hasLastClaim: false, agreedAtMs: 2_000, isByPerson: true })).toBe('stands')
  expect(kindOf({ hasLastClaim: false, agreedAtMs: 2_000 })).toBe('found')
})

test('nothing is claimed without a standby while a promoted one would be trusted', () => {
  expect(standbyMissedMs({ ...asAgreed, waitsForMs: 5 })).toBe(5)
  expect(standbyMissedMs({ ...asAgreed, waitsForMs: 5, isSynchronous: true })).toBeNull()
  expect(standbyMissedMs({ ...asAgreed, waitsForMs: -5 })).toBeNull()
})

test('nothing but a history as agreed, or a proof, ever lets anybody go on', () => {
  const some = fc.record({
    now: fc.constantFrom(identity, promoted.now, { ...identity, systemId: '8' }, { ...identity, ledgerOid: 1 }),
    isPastMark: fc.boolean(),
    hasTarget: fc.boolean(),
    waitsForMs: fc.constantFrom(null, -1, 1),
    foundForMs: fc.constantFrom(null, 0, objectionMs),
    mayGoOn: fc.boolean(),
    hasLastClaim: fc.boolean(),
    isPastSeen: fc.boolean(),
    hasRecovered: fc.boolean(),
    reachesSettled: fc.constantFrom(null, true, false),
  })
  fc.assert(
    fc.property(some, fc.constantFrom(null, memory), (seen, its) => {
      const { kind } = decide({ ...asAgreed, ...seen }, its)
      const knowsBetter = its !== null && !seen.hasLastClaim
      if (kind === 'stands') expect(seen).toMatchObject({ now: identity, isPastMark: true, foundForMs: null })
      if (kind === 'goes-on')
        expect([seen, its]).toMatchObject([{ mayGoOn: true, foundForMs: objectionMs, reachesSettled: true }, memory])
      if (knowsBetter) expect(['found', 'waits']).toContain(kind)
    }),
  )
})
