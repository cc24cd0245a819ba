import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { SubmitVerdict } from '../../src/daemon/decideSubmit.ts'
import { stepOfUnsentAttempt, toSubmitStep } from '../../src/daemon/decideSubmit.ts'
import { type PauseToRaise, pauseReasons } from '../../src/model/service.ts'
import type { Submission } from '../../src/model/submission.ts'
import { openAnyRow } from '../support/anyRow.ts'
import { openForFile } from '../support/openForFile.ts'
import { anyHistory, anyMessage, submission } from '../support/submission.ts'

const now = { firstPollMs: 7_000, freshKey: '00000000-0000-7000-8000-0000000000ff' }
const pause: PauseToRaise = { reason: 'throttled', askedMs: 3_000, detail: 'too many' }
const advance = (verdict: SubmitVerdict, given: Partial<Submission> = {}) =>
  toSubmitStep(submission(given), verdict, now)

test.each<[SubmitVerdict, Partial<Submission>, object]>([
  [
    { kind: 'accepted', transactionId: 'tx', breach: null },
    { polls: 3, fruitless: 4, notDoneMs: 9, repeatedAfter401: true },
    {
      state: 'accepted',
      transactionId: 'tx',
      pollInMs: 7_000,
      polls: 0,
      fruitless: 0,
      notDoneMs: null,
      repeatedAfter401: false,
    },
  ],
  [
    { kind: 'accepted', transactionId: 'tx', breach: null },
    { tracked: false },
    { state: 'completed', transactionId: 'tx' },
  ],
  [
    { kind: 'rejected', code: 'E001', reason: 'no', leftTrace: false },
    {},
    { state: 'rejected', errorCode: 'E001', error: 'no' },
  ],
  [{ kind: 'rejected', code: null, reason: '409', leftTrace: true }, {}, { state: 'rejected', mayHaveArrived: true }],
  [{ kind: 'failed', code: null, reason: 'no' }, {}, { state: 'failed', errorCode: null, error: 'no' }],
  [
    { kind: 'uncertain', code: null, reason: 'lost', breach: null },
    {},
    { state: 'uncertain', errorCode: null, error: 'lost' },
  ],
  [
    { kind: 'renew-key', gaveId: false, pause: null, reason: 'E002' },
    { renewedKeys: 1 },
    { state: 'queued', dueInMs: 0, idempotencyKey: now.freshKey, renewedKeys: 2 },
  ],
  [
    { kind: 'renew-key', gaveId: true, pause: null, reason: 'E002' },
    { renewedKeys: 1, resubmissions: 1 },
    { state: 'queued', dueInMs: 0, idempotencyKey: now.freshKey, resubmissions: 2 },
  ],
  [
    { kind: 'retry', afterMs: 2_000, reason: '500' },
    { serverErrors: 1 },
    { state: 'queued', dueInMs: 2_000, serverErrors: 2, inDoubt: true },
  ],
  [{ kind: 'resend', afterMs: 4_000, reason: 'lost' }, {}, { state: 'queued', dueInMs: 4_000, inDoubt: true }],
  [
    { kind: 'probe', transactionId: null, reason: 'lost' },
    { id: 'me' },
    { state: 'sending', transactionId: 'me', pollInMs: 5_000, inDoubt: true },
  ],
  [
    { kind: 'probe', transactionId: 'tx-1', reason: '303' },
    { id: 'me' },
    { state: 'sending', transactionId: 'tx-1', pollInMs: now.firstPollMs, inDoubt: true },
  ],
  // The service named our own id: a GET that does not know it fails the record, and sends nothing again.
  [{ kind: 'probe', transactionId: 'me', reason: '303' }, { id: 'me' }, { state: 'accepted', transactionId: 'me' }],
  [{ kind: 'new-token', ofAge: false, reason: '401' }, {}, { state: 'queued', dueInMs: 0, repeatedAfter401: true }],
  [{ kind: 'new-token', ofAge: true, reason: '401' }, {}, { state: 'queued', dueInMs: 0 }],
  [
    { kind: 'pause', gaveId: false, pause, mayHaveArrived: false },
    { repeatedAfter401: true },
    { state: 'queued', dueInMs: 0, repeatedAfter401: false },
  ],
  [{ kind: 'pause', gaveId: true, pause, mayHaveArrived: false }, {}, { state: 'queued', resubmissions: 1 }],
  [{ kind: 'pause', gaveId: true, pause, mayHaveArrived: false }, { resubmissions: 1 }, { resubmissions: 1 }],
  [{ kind: 'pause', gaveId: false, pause, mayHaveArrived: true }, {}, { state: 'queued', dueInMs: 0, inDoubt: true }],
])('the verdict %o for %o', (verdict, given, change) => {
  const step = advance(verdict, given)
  expect(step.change).toMatchObject(change)
  expect(step.pause).toBe(verdict.kind === 'pause' ? pause : null)
  expect(step.cause).not.toBe('')
})

describe.each<Partial<Submission>>([
  { inDoubt: true },
  { serverErrors: 1 },
  { resubmissions: 1 },
])('after %j', (history) => {
  test.each<SubmitVerdict>([
    { kind: 'rejected', code: 'E001', reason: 'no', leftTrace: false },
    { kind: 'failed', code: 'E002', reason: 'no' },
  ])('$kind: an earlier request may have arrived', (verdict) => {
    expect(advance(verdict, history).change).toMatchObject({ mayHaveArrived: true })
    expect(advance(verdict, { renewedKeys: 1 }).change).toMatchObject({ mayHaveArrived: false })
  })
})

describe('what a step must not do:', () => {
  test('only the verdict `renew-key` changes the idempotency key', () => {
    fc.assert(
      fc.property(anyVerdict(), anyHistory, (verdict, history) => {
        const { idempotencyKey } = advance(verdict, history).change
        expect(idempotencyKey).toBe(verdict.kind === 'renew-key' ? now.freshKey : undefined)
      }),
    )
  })

  test('no verdict takes a doubt away', () => {
    fc.assert(
      fc.property(anyVerdict(), anyHistory, (verdict, history) => {
        expect(advance(verdict, history).change.inDoubt).not.toBe(false)
      }),
    )
  })

  test('a pause and a new token use up no attempt', () => {
    for (const verdict of [
      { kind: 'pause', gaveId: false, pause, mayHaveArrived: false } as const,
      { kind: 'new-token', ofAge: false, reason: '' } as const,
    ]) {
      const { change } = advance(verdict)
      expect(Object.keys(change).sort()).toEqual(['dueInMs', 'repeatedAfter401', 'state'])
    }
  })

  test('a request that never left changes only the state', () => {
    expect(stepOfUnsentAttempt('stopped')).toEqual({
      change: { state: 'queued', dueInMs: 0 },
      cause: 'never_sent',
      message: 'never sent: stopped',
      pause: null,
    })
  })
})

describe('in the ledger', () => {
  const rows = openForFile(openAnyRow)

  test('the database accepts the step of any verdict for any submission', async () => {
    await fc.assert(
      fc.asyncProperty(anyVerdict(), anyHistory, async (verdict, history) => {
        const sent = await rows.sending(history)
        const step = toSubmitStep(sent, verdict, { firstPollMs: 0, freshKey: randomUUID() })
        expect(await rows.write(sent, step)).toBe(step.change.state)
      }),
      { numRuns: process.env.LONG ? 1_000 : 60 },
    )
  })
})

function anyVerdict(): fc.Arbitrary<SubmitVerdict> {
  const reason = anyMessage
  const code = fc.option(fc.string())
  const afterMs = fc.double({ min: 0, max: 1e7, noNaN: true })
  const pause = fc.record({
    reason: fc.constantFrom(
      ...pauseReasons.filter((each) => each !== 'operator' && each !== 'history' && each !== 'standby'),
    ),
    askedMs: fc.option(fc.nat()),
    detail: fc.string(),
  })
  return fc.oneof(
    fc.record({
      kind: fc.constant('accepted' as const),
      transactionId: fc.string({ minLength: 1 }),
      breach: fc.constant(null),
    }),
    fc.record({ kind: fc.constant('rejected' as const), code, reason, leftTrace: fc.boolean() }),
    fc.record({ kind: fc.constant('failed' as const), code, reason }),
    fc.record({ kind: fc.constant('uncertain' as const), code, reason, breach: fc.constant(null) }),
    fc.record({ kind: fc.constantFrom('retry' as const, 'resend' as const), afterMs, reason }),
    fc.record({ kind: fc.constant('renew-key' as const), gaveId: fc.boolean(), pause: fc.option(pause), reason }),
    fc.record({ kind: fc.constant('probe' as const), transactionId: fc.option(fc.uuid()), reason }),
    fc.record({ kind: fc.constant('new-token' as const), ofAge: fc.boolean(), reason }),
    fc.record({
      kind: fc.constant('pause' as const),
      gaveId: fc.boolean(),
      mayHaveArrived: fc.boolean(),
      pause,
    }),
  )
}
