import { expect, test } from 'vitest'
import { findViolations } from '../../../tools/crash/checker.ts'
import type { Arrival, EventRow, History, LedgerRow, OutboxRow } from '../../../tools/crash/history.ts'

/** What a campaign finds if all went well: one record, sent once, completed. */
function evidence(change: {
  outbox?: Partial<OutboxRow>
  ledger?: Partial<LedgerRow>
  events?: EventRow[]
  arrivals?: Arrival[]
  more?: Partial<History>
}): History {
  return {
    written: new Map([['m1.', { marker: 'm1.', outcome: 'completed', amount: '1.50' }]]),
    outbox: [
      {
        outboxId: '1',
        marker: 'm1.',
        key: null,
        status: 'completed',
        transactionId: 'tx',
        errorCode: null,
        toldUs: null,
        ...change.outbox,
      },
    ],
    ledger: [{ ...ledgerRow, ...change.ledger }],
    documents: { rows: [], versions: [] },
    events: change.events ?? [captured, sending, accepted, completed],
    arrivals: change.arrivals ?? [arrival],
    requestsMost: 10,
    requestsAllowed: 10,
    throttledUnasked: 0,
    unmarked: 0,
    requests: 2,
    emptied: 0,
    problems: [],
    ...change.more,
  }
}

const ledgerRow: LedgerRow = {
  isPruned: false,
  id: 'a',
  outboxId: '1',
  state: 'completed',
  attempt: 1,
  resubmissions: 0,
  renewedKeys: 0,
  seq: 1,
  transactionId: 'tx',
  errorCode: null,
  error: null,
  reportDue: false,
}
const prunedRow = { isPruned: true, attempt: 0, seq: 0 }
const step = (atUs: number, from: string | null, to: string, attempt: number): EventRow => ({
  submissionId: 'a',
  atUs,
  from,
  to,
  attempt,
  cause: 'test',
  message: null,
  who: 'daemon',
})
const captured = step(1, null, 'queued', 0)
const sending = step(2, 'queued', 'sending', 1)
const accepted = step(4, 'sending', 'accepted', 1)
const completed = step(5, 'accepted', 'completed', 1)
const arrival: Arrival = {
  sequence: 1,
  marker: 'm1.',
  amount: '1.50',
  arrivedUs: 3,
  idempotencyKey: 'k',
  status: 200,
  faultId: null,
  effectId: 'tx',
  errorCode: null,
  doneUs: 4,
}
const second: Arrival = { ...arrival, sequence: 2, arrivedUs: 6, effectId: 'tx2' }

test('a record that was sent once and completed is not a violation', () => {
  expect(findViolations(evidence({}))).toEqual([])
})

test('a record that a newer version superseded is not a violation of the path', () => {
  const superseded = { ...step(2, 'queued', 'discarded', 0), cause: 'superseded' }
  const found = findViolations(evidence({ events: [captured, superseded], ledger: { state: 'discarded', attempt: 0 } }))
  expect(found.map(({ what }) => what).join()).not.toContain('a step from')
})

test('a pruned record needs only its outcome, and no events', () => {
  expect(findViolations(evidence({ ledger: prunedRow, events: [] }))).toEqual([])
})

test.each<[string, Parameters<typeof evidence>[0], RegExp]>([
  ['a record without a submission', { more: { ledger: [] } }, /was lost/],
  ['two submissions of one record', { more: { ledger: [ledgerRow, { ...ledgerRow, id: 'b' }] } }, /2 submissions/],
  ['a record that has not ended', { ledger: { state: 'accepted' } }, /has not come to an end/],
  ['an outbox row with a different state', { outbox: { status: 'accepted' } }, /the outbox row says accepted/],
  ['a different transaction id in the outbox', { outbox: { transactionId: 'other' } }, /another transaction id/],
  ['a second effect', { arrivals: [arrival, second] }, /sent twice/],
  ['a completed record that the service does not have', { arrivals: [] }, /does not have its transaction/],
  ['a different amount', { arrivals: [{ ...arrival, amount: '1.5' }] }, /1\.50 arrived as 1\.5/],
  [
    'a request before its claim was committed',
    { arrivals: [{ ...arrival, arrivedUs: 1 }] },
    /before it was committed to/,
  ],
  [
    'a second request under a different key',
    { arrivals: [arrival, { ...second, effectId: null, idempotencyKey: 'l' }] },
    /2 keys/,
  ],
  ['a write under an old fence', { events: [captured, sending, accepted, accepted, completed] }, /old fence/],
  [
    'a queued record that was given up',
    { events: [captured, step(2, 'queued', 'discarded', 0)], ledger: { state: 'discarded', attempt: 0 } },
    /a step from queued to discarded/,
  ],
  ['an attempt that is not in the events', { ledger: { attempt: 2 } }, /1 attempts in the events, 2 in the ledger/],
  ['too many requests', { more: { requestsMost: 11 } }, /11 requests in a window/],
  [
    'rows that were captured without a mark',
    { more: { unmarked: 1 } },
    /1 of 1 completed rows were captured without a mark/,
  ],
  ['a service that had to throttle', { more: { throttledUnasked: 1 } }, /had to throttle/],
  ['a record that was never committed', { arrivals: [arrival, { ...second, marker: 'm2.' }] }, /never committed/],
  [
    'a record that was pruned and sent again',
    { ledger: prunedRow, events: [], arrivals: [arrival, second] },
    /sent twice/,
  ],
  [
    'a record that was pruned and captured again',
    {
      more: {
        ledger: [
          { ...ledgerRow, ...prunedRow },
          { ...ledgerRow, id: 'b' },
        ],
      },
    },
    /2 submissions/,
  ],
  [
    'a record that was pruned while it needed attention',
    { ledger: { ...prunedRow, state: 'failed' }, events: [] },
    /pruned although/,
  ],
  ['a submission without a row', { more: { ledger: [ledgerRow, { ...ledgerRow, outboxId: '2' }] } }, /no outbox row/],
])('%s is a violation', (_, change, what) => {
  expect(findViolations(evidence(change)).map((violation) => violation.what)).toContainEqual(
    expect.stringMatching(what),
  )
})

test('a second effect is a violation, unless the service had failed the first with E003 before', () => {
  const failed = { ...arrival, errorCode: 'E003' }
  const twice = (doneUs: number) =>
    findViolations(evidence({ arrivals: [{ ...failed, doneUs }, second] })).map(({ what }) => what)
  expect(twice(5).join()).not.toContain('sent twice')
  expect(twice(7).join()).toContain('sent twice')
})

test('of two records with one key, the second may be sent only after the first was accepted', () => {
  const other = (sentUs: number): History => {
    const base = evidence({ outbox: { key: 'k' } })
    const events = base.events.map((event) => ({ ...event, submissionId: 'b', atUs: event.atUs + 10 }))
    return {
      ...base,
      written: new Map([...base.written, ['m2.', { marker: 'm2.', outcome: 'completed', amount: '1.50' }]]),
      outbox: [
        ...base.outbox,
        { ...(base.outbox[0] as OutboxRow), outboxId: '2', marker: 'm2.', transactionId: 'tx2' },
      ],
      ledger: [...base.ledger, { ...ledgerRow, id: 'b', outboxId: '2', seq: 2, transactionId: 'tx2' }],
      events: [...base.events, ...events.map((event, i) => (i === 1 ? { ...event, atUs: sentUs } : event))],
      arrivals: [...base.arrivals, { ...second, marker: 'm2.', arrivedUs: 13 }],
    }
  }
  expect(findViolations(other(12))).toEqual([])
  expect(findViolations(other(3)).map(({ what }) => what)).toEqual([expect.stringContaining('was accepted or ended')])

  // The first was captured later. That is right only if it was captured as uncertain, because a restored ledger had
  // forgotten it.
  const late = (events: EventRow[]): History => {
    const base = other(12)
    const ended = { transactionId: null, state: 'uncertain', status: 'uncertain', attempt: 0 }
    return {
      ...base,
      outbox: base.outbox.map((row, i) => (i === 0 ? { ...row, ...ended } : row)),
      ledger: base.ledger.map((row, i) => (i === 0 ? { ...row, ...ended, seq: 3 } : row)),
      events: [...events, ...base.events.filter(({ submissionId }) => submissionId === 'b')],
      arrivals: base.arrivals.slice(1),
    }
  }
  expect(findViolations(late([step(20, null, 'uncertain', 0)]))).toEqual([])
  const queued = [step(20, null, 'queued', 0), step(21, 'queued', 'uncertain', 0)]
  expect(findViolations(late(queued)).map(({ what }) => what)).toEqual([expect.stringContaining('captured before')])
})

test('a request whose claim a failover lost needs no event in the ledger, but a second one is a violation', () => {
  const uncertain = { state: 'uncertain', attempt: 0, transactionId: null }
  const its = {
    ledger: uncertain,
    outbox: { status: 'uncertain', transactionId: null },
    events: [captured, step(9, 'queued', 'uncertain', 0)],
  }
  const lost = [{ fromUs: arrival.arrivedUs, untilUs: arrival.arrivedUs }]
  expect(whatOf(its)).toEqual([expect.stringContaining('arrived before it was committed to')])
  expect(whatOf({ ...its, more: { lost } })).toEqual([])
  const again = { ...arrival, sequence: 2, effectId: 'other', arrivedUs: arrival.arrivedUs + 1 }
  expect(whatOf({ ...its, arrivals: [arrival, again], more: { lost } })).toContain('sent twice: tx and other')
})

test('a restored ledger may lack a record whose row got its outcome meanwhile, if the service has it once', () => {
  const lost = [{ fromUs: 1, untilUs: 10 }]
  const told = (toldUs: number | null, more: Partial<OutboxRow> = {}, arrivals = [arrival]) =>
    whatOf({ outbox: { toldUs, ...more }, arrivals, more: { ledger: [], events: [], lost } })
  expect(told(5)).toEqual([])
  expect(told(5, { status: 'discarded', transactionId: null })).toEqual([])
  expect(told(11)).toEqual([expect.stringContaining('it was lost')])
  expect(told(5, { status: 'accepted' })).toEqual([expect.stringContaining('it was lost')])
  expect(told(5, {}, [])).toEqual([expect.stringContaining('the service not its transaction')])
  expect(told(5, {}, [arrival, second])).toEqual([expect.stringContaining('sent twice')])
})

const whatOf = (change: Parameters<typeof evidence>[0]) => findViolations(evidence(change)).map(({ what }) => what)
