import { expect, test } from 'vitest'
import { snapshotOf } from '../../src/daemon/snapshotOf.ts'
import type { LedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { type State, states } from '../../src/model.ts'

const ledger = (oldestUnsentMs: number | null): LedgerSnapshot => ({
  submissions: Object.fromEntries(states.map((state) => [state, 0])) as Record<State, number>,
  nowMs: 10,
  probing: 0,
  oldestUnsentMs,
  oldestAcceptedMs: null,
  oldestForPersonMs: null,
  pauses: [{ reason: 'throttled', sinceMs: 0, untilMs: null, detail: '' }],
  problems: {},
  rateCapacity: 100,
  rateAvailable: 40,
  reportsDue: 0,
  oldestReportDueMs: null,
})

test('the oldest unsent row is the older of what the ledger and the outbox have', () => {
  const oldest = (inLedger: number | null, inOutbox: number | null) =>
    snapshotOf(ledger(inLedger), { waiting: 0, oldestMs: inOutbox }).oldestUnsentMs
  expect([oldest(null, null), oldest(5, null), oldest(null, 7), oldest(5, 7), oldest(9, 7)]).toEqual([null, 5, 7, 5, 7])
})

test('pauses are shown by their reasons, and what waits is the outbox’s', () => {
  expect(snapshotOf(ledger(null), { waiting: 3, oldestMs: null })).toMatchObject({
    pauses: ['throttled'],
    outboxWaiting: 3,
    rateAvailable: 40,
  })
})
