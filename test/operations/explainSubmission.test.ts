import { expect, test } from 'vitest'
import type { SubmissionDetail } from '../../src/ledger/operator/readSubmissionDetail.ts'
import { pauseReasons } from '../../src/model/service.ts'
import { explainSubmission } from '../../src/operations/explainSubmission.ts'

const nowMs = Date.UTC(2026, 10, 3, 12)
const detail: SubmissionDetail = {
  id: 'abc',
  outboxId: '1',
  type: 'data',
  key: null,
  resource: 'data',
  state: 'queued',
  sinceMs: nowMs,
  recordedMs: nowMs,
  capturedMs: nowMs,
  endedMs: null,
  emptiedMs: null,
  erasedMs: null,
  code: null,
  wasSent: false,
  error: null,
  payload: '{}',
  body: '{}',
  result: null,
  transactionId: null,
  idempotencyKey: 'key',
  attempt: 1,
  tracked: true,
  probing: false,
  inDoubt: false,
  mayHaveArrived: false,
  changedAfterSent: false,
  idByPerson: false,
  newer: null,
  answered: false,
  polledRarely: false,
  held: false,
  blocks: false,
  dueMs: nowMs - 1_000,
  sentMs: nowMs - 60_000,
  acceptedMs: null,
  pollMs: null,
  polls: 0,
  fruitless: 0,
  openedTimes: 0,
  unknownSinceMs: null,
  reportDue: false,
  reportTrouble: null,
  reportAgainMs: null,
  conflict: null,
  blocker: null,
  pauses: [],
  free: 5,
  daemonLives: true,
  nowMs,
  events: [],
}

const explain = (changed: Partial<SubmissionDetail>) => {
  const { why, adviceText: next } = explainSubmission({ ...detail, ...changed })
  return `${why} / ${next}`
}
const event = {
  atMs: nowMs,
  from: null,
  to: 'queued',
  attempt: 1,
  cause: 'captured',
  message: null,
  actor: 'outboxd',
  who: 'x',
  detail: null,
} as const

test.each<[Partial<SubmissionDetail>, string]>([
  [{}, 'it is the next record to be sent'],
  [{ free: 0 }, 'the budget is spent, so it waits for a free request'],
  [
    { dueMs: nowMs + 2_000, events: [{ ...event, cause: 'asked_again', message: 'the service answered 500' }] },
    'it waits to be sent again. Cause: the service answered 500 / to be sent from 2026-11-03 12:00:02Z (in 2 s)',
  ],
  [
    { held: true, blocker: { id: 'b', outboxId: '12', state: 'uncertain', isOwnVersion: false } },
    '`outboxd show outbox:12` says how',
  ],
  [
    { held: true, blocker: { id: 'b', outboxId: '12', state: 'sending', isOwnVersion: false } },
    'which is sending and has the same key / sent when outbox:12 is accepted',
  ],
  [
    { blocker: { id: 'b', outboxId: '12', state: 'queued', isOwnVersion: true } },
    'held behind outbox:12, which is queued and an earlier version of the document / sent when outbox:12 is accepted',
  ],
  [
    { pauses: [{ reason: 'operator', sinceMs: nowMs, untilMs: null, detail: 'closing' }] },
    'paused (operator) until `outboxd resume`: closing / sent after the pause',
  ],
  [
    { pauses: [{ reason: 'throttled', sinceMs: nowMs, untilMs: nowMs - 1, detail: '429' }] },
    'paused (throttled) until one request succeeds: 429',
  ],
  [{ state: 'sending', dueMs: null }, 'attempt 1 is on the wire since 2026-11-03 11:59:00Z (1 min ago)'],
  [
    { state: 'sending', probing: true, pollMs: nowMs + 5_000, dueMs: null },
    'the service is asked again at 2026-11-03 12:00:05Z',
  ],
  [
    {
      state: 'sending',
      probing: true,
      fruitless: 7,
      events: [{ ...event, cause: 'asked_again', message: 'the service answered 500' }],
    },
    'the last 7 polls brought no usable answer; the service answered 500 / ',
  ],
  [{ state: 'sending', probing: true, polledRarely: true }, 'outboxd resolve abc --arrived TRANSACTION_ID'],
  [{ state: 'sending', probing: true, polledRarely: true }, 'outboxd resolve abc --not-arrived'],
  [
    { state: 'accepted', transactionId: 't', acceptedMs: nowMs - 120_000, pollMs: nowMs + 9_000, polls: 2 },
    'accepted it as t 2 min ago and has not finished it (2 polls so far) / the service is asked again at 2026-11-03 12:00:09Z (in 9 s)',
  ],
  [
    { state: 'accepted', transactionId: 't', pollMs: nowMs, unknownSinceMs: nowMs },
    'that it does not know the transaction',
  ],
  [{ state: 'completed' }, 'the service finished it / nothing'],
  [{ state: 'completed', reportDue: true }, 'writes this state back'],
  [{ state: 'failed', error: 'no' }, 'no / needs attention: remove the cause, then\n  outboxd replay abc'],
  [
    { state: 'failed', code: 'E002' },
    'ask the operator of the service why each new id counts as taken, then\n  outboxd replay abc',
  ],
  [{ state: 'rejected', error: 'amount is missing', body: null }, 'fix the mapping file'],
  [{ state: 'uncertain', error: 'no answer', blocks: true }, 'until then, later records of its key wait'],
  [{ state: 'uncertain' }, 'outboxd resolve abc --not-arrived'],
  [{ state: 'discarded', events: [{ ...event, cause: 'discarded', message: 'discarded: twice' }] }, 'discarded: twice'],
  [
    { state: 'discarded', events: [{ ...event, cause: 'discarded', actor: 'operator' }] },
    'outboxd replay abc --discarded',
  ],
])('%j: %s', (changed, message) => expect(explain(changed)).toContain(message))

test('the advice for an uncertain record names the times of its attempts in doubt', () => {
  const sent = (...minutes: number[]) =>
    minutes.map((minute) => {
      const atMs = nowMs + minute * 60_000
      return { ...event, atMs, from: 'queued', to: 'sending', cause: 'claimed' } as const
    })
  const next = (changed: Partial<SubmissionDetail>) => explain({ state: 'uncertain', ...changed })
  expect(next({ events: sent(0, 1), code: 'E002' })).toContain('whether it arrived at 2026-11-03 12:00:00Z, then')
  expect(next({ events: sent(0, 1) })).toContain(
    'arrived between 2026-11-03 12:00:00Z and 2026-11-03 12:01:00Z (2 attempts), then',
  )
  expect(next({ events: sent(0, 1, 2) })).toContain('12:00:00Z and 2026-11-03 12:02:00Z (3 attempts), then')
  const neverSent = { ...event, from: 'sending', to: 'queued', cause: 'never_sent' } as const
  expect(next({ events: [...sent(0), neverSent, ...sent(1)] })).toContain('whether it arrived at 2026-11-03 12:01:00Z,')
})

test('of several pauses, the explanation names the one that ends last', () => {
  const pause = { sinceMs: nowMs, detail: '' }
  const message = explain({
    pauses: [
      { ...pause, reason: 'throttled', untilMs: nowMs + 1_000 },
      { ...pause, reason: 'unavailable', untilMs: nowMs + 60_000 },
    ],
  })
  expect(message).toContain('(unavailable)')
  expect(message).toContain('12:01:00Z')
})

test('a change after sending: correct it by hand and discard it, or send it, too, unless nothing can be sent', () => {
  const of = (body: string | null) =>
    explainSubmission({ ...detail, state: 'rejected', changedAfterSent: true, mayHaveArrived: true, body }).adviceText
  expect(of('{}')).toContain('the service has, or may have, the document as it was sent before')
  expect(of('{}')).toMatch(/outboxd discard .*\n.*outboxd replay /)
  expect(of(null)).not.toContain('replay')
})

/** What `next:` promises for a status, and changes to that status that each make the promise wrong. */
const promises: readonly [string, Partial<SubmissionDetail>, readonly Partial<SubmissionDetail>[]][] = [
  [
    'sent within seconds',
    {},
    [
      { held: true, blocker: { id: 'b', outboxId: '12', state: 'uncertain', isOwnVersion: false } },
      { dueMs: nowMs + 1_000 },
      { free: 0 },
      { daemonLives: false },
      ...pauseReasons.map((reason) => ({ pauses: [{ reason, sinceMs: nowMs, untilMs: nowMs + 1_000, detail: '' }] })),
    ],
  ],
  [
    'the service is asked as soon as a request is free',
    { state: 'accepted', transactionId: 't', pollMs: nowMs },
    [
      { pollMs: nowMs + 1_000 },
      { polledRarely: true },
      { daemonLives: false },
      ...pauseReasons.map((reason) => ({ pauses: [{ reason, sinceMs: nowMs, untilMs: null, detail: '' }] })),
    ],
  ],
  [
    'nothing: it has ended',
    { state: 'completed' },
    [{ reportDue: true }, { reportDue: true, daemonLives: false }, { idByPerson: true }],
  ],
]

test.each(
  promises.flatMap(([promise, holds, exceptions]) => exceptions.map((changed) => [promise, holds, changed] as const)),
)('next: is only "%s" for %j, and something else if %j', (promise, holds, changed) => {
  const next = (more: Partial<SubmissionDetail>) => explainSubmission({ ...detail, ...holds, ...more }).adviceText
  expect(next({})).toBe(promise)
  expect(next(changed)).not.toBe(promise)
})

test('while no daemon runs, next: says so for each step that a daemon would take', () => {
  for (const state of ['queued', 'sending', 'accepted'] as const)
    expect(explain({ state, daemonLives: false })).toMatch(/no daemon is running.*`outboxd run`$/)
  expect(explain({ state: 'discarded', reportDue: true, daemonLives: false })).toContain('no daemon is running')
  expect(explain({ state: 'uncertain', daemonLives: false })).not.toContain('no daemon')
})
