import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { TrackVerdict } from '../../src/daemon/decideTrack.ts'
import { stepOfUnsentPoll, toTrackStep } from '../../src/daemon/decideTrack.ts'
import { type PauseToRaise, pauseReasons } from '../../src/model/service.ts'
import type { Submission } from '../../src/model/submission.ts'
import { openAnyRow } from '../support/anyRow.ts'
import { openForFile } from '../support/openForFile.ts'
import { anyHistory, anyMessage, submission } from '../support/submission.ts'

const now = {
  nextPollDelayMs: 9_000,
  freshKey: '00000000-0000-7000-8000-0000000000ff',
  ageAskedMs: 5_000.4,
  ageAnsweredMs: 5_012.6,
}
const pause: PauseToRaise = { reason: 'unavailable', askedMs: null, detail: 'E003' }
const accepted: Partial<Submission> = { state: 'accepted', transactionId: 'tx', claimId: null, polls: 2 }
const probing: Partial<Submission> = {
  ...accepted,
  state: 'sending',
  probing: true,
  id: 'me',
  transactionId: 'me',
  inDoubt: true,
}
const advance = (verdict: TrackVerdict, given: Partial<Submission>) => toTrackStep(submission(given), verdict, now)

const unknown: TrackVerdict = { kind: 'ask-again', afterMs: 1_000, unknown: true, reason: '404', breach: null }
const lost: TrackVerdict = { ...unknown, unknown: false, reason: 'timeout' }

test.each<[string, TrackVerdict, Partial<Submission>, object]>([
  [
    'completed',
    { kind: 'completed', result: '{"a":1.10}' },
    accepted,
    { state: 'completed', result: '{"a":1.10}', doneMs: 5_013, polls: 3 },
  ],
  ['completed, from probing', { kind: 'completed', result: null }, probing, { state: 'completed', doneMs: 5_013 }],
  [
    'failed',
    { kind: 'failed', code: 'E009', reason: 'no' },
    accepted,
    { state: 'failed', errorCode: 'E009', error: 'no', doneMs: 5_013, mayHaveArrived: false },
  ],
  [
    'failed, and an earlier attempt may have arrived as well',
    { kind: 'failed', code: 'E009', reason: 'no' },
    { ...accepted, inDoubt: true },
    { state: 'failed', errorCode: 'E009', mayHaveArrived: true },
  ],
  [
    'failed, after an earlier transaction had failed with E002 or E003, which may be there nevertheless',
    { kind: 'failed', code: 'E009', reason: 'no' },
    { ...accepted, resubmissions: 1 },
    { state: 'failed', errorCode: 'E009', mayHaveArrived: true },
  ],
  [
    'failed, under an id that an operator gave: it may be another record’s',
    { kind: 'failed', code: 'E009', reason: 'no' },
    { ...accepted, idByPerson: true },
    { state: 'failed', errorCode: 'E009', mayHaveArrived: true },
  ],
  [
    'unknown for ten minutes: it may have arrived, and the service has not ended it',
    { kind: 'lost', idByPerson: false, reason: '404' },
    { ...accepted, unknownForMs: 600_000 },
    { state: 'failed', error: '404', mayHaveArrived: true },
  ],
  [
    'unknown for ten minutes under an id that an operator gave: uncertain again, without the id',
    { kind: 'lost', idByPerson: true, reason: '404' },
    { ...accepted, idByPerson: true },
    { state: 'uncertain', error: '404', transactionId: null },
  ],
  [
    'unknown for ten minutes, while probing: it had not arrived',
    { kind: 'lost', idByPerson: false, reason: '404' },
    { ...probing, unknownForMs: 600_000 },
    { state: 'queued', dueInMs: 0, transactionId: null },
  ],
  [
    'a duplicate, perhaps of an earlier attempt',
    { kind: 'uncertain', code: 'E002', reason: 'there twice' },
    accepted,
    { state: 'uncertain', errorCode: 'E002', error: 'there twice', doneMs: 5_013 },
  ],
  [
    'pending',
    { kind: 'pending' },
    { ...accepted, fruitless: 4 },
    { state: 'accepted', pollInMs: 9_000, polls: 3, fruitless: 0, notDoneMs: 5_000 },
  ],
  ['pending, from probing: it had arrived', { kind: 'pending' }, probing, { state: 'accepted', pollInMs: 9_000 }],
  ['unknown', unknown, accepted, { state: 'accepted', pollInMs: 1_000, polls: 3, fruitless: 1, unknown: true }],
  ['lost', lost, { ...accepted, fruitless: 3 }, { state: 'accepted', pollInMs: 1_000, fruitless: 4, unknown: false }],
  ['unknown after timeouts', unknown, { ...accepted, fruitless: 5 }, { fruitless: 1, unknown: true }],
  ['unknown again', unknown, { ...accepted, fruitless: 1, unknownForMs: 5 }, { fruitless: 2, unknown: true }],
  ['unknown, while probing', unknown, probing, { state: 'sending', pollInMs: 1_000, unknown: true }],
  [
    'unknown for a minute, while probing: it had not arrived',
    unknown,
    { ...probing, unknownForMs: 60_001, fruitless: 5 },
    { state: 'queued', dueInMs: 0, transactionId: null, polls: 3 },
  ],
  [
    'the id of a Location, unknown for a minute: arrived under an unknown id (303 was sent again for ever)',
    unknown,
    { ...probing, transactionId: 'tx-1', unknownForMs: 60_001, fruitless: 5 },
    { state: 'uncertain', transactionId: null, polls: 3, error: expect.stringContaining('tx-1') },
  ],
  [
    'a connection lost, after it was unknown for a minute',
    lost,
    { ...probing, unknownForMs: 60_001, fruitless: 5 },
    { state: 'sending', pollInMs: 1_000 },
  ],
  [
    'to be submitted again after E002',
    { kind: 'resubmit', afterMs: 0, code: 'E002', reason: 'E002' },
    accepted,
    { state: 'queued', dueInMs: 0, resubmissions: 1, errorCode: 'E002' },
  ],
  [
    'to be submitted again after E003: a later E002 may mean the first transaction',
    { kind: 'resubmit', afterMs: 300_000, code: 'E003', reason: 'E003' },
    { ...accepted, resubmissions: 1, inDoubt: true, notDoneMs: 5 },
    {
      state: 'queued',
      dueInMs: 300_000,
      resubmissions: 2,
      answeredUnavailable: true,
      idempotencyKey: now.freshKey,
      transactionId: null,
      notDoneMs: null,
      errorCode: 'E003',
    },
  ],
  [
    'an unknown status',
    {
      kind: 'ask-again',
      afterMs: 1_000,
      unknown: false,
      reason: 'unknown',
      breach: 'unknown_status',
      foreignStatus: 'archived',
    },
    accepted,
    { state: 'accepted', foreignStatus: 'archived', fruitless: 1 },
  ],
  [
    'a first 401',
    { kind: 'new-token', ofAge: false, reason: '401' },
    { ...accepted, unknownForMs: 5 },
    { state: 'accepted', pollInMs: 0, repeatedAfter401: true, unknown: true },
  ],
  ['a pause', { kind: 'pause', pause }, probing, { state: 'sending', pollInMs: 5_000, repeatedAfter401: false }],
])('%s', (_, verdict, given, change) => {
  const step = advance(verdict, given)
  expect(step.change).toMatchObject(change)
  expect(step.pause).toBe(verdict.kind === 'pause' ? pause : null)
  expect(step.cause).not.toBe('')
})

describe('what a step must not do:', () => {
  test('only an answer of the service gives a processing time', () => {
    for (const idByPerson of [true, false])
      expect(advance({ kind: 'lost', idByPerson, reason: '404' }, accepted).change).toMatchObject({ doneMs: null })
  })

  test('only a record that is submitted again gets a new idempotency key', () => {
    fc.assert(
      fc.property(anyVerdict(), anyHistory, fc.constantFrom(accepted, probing), (verdict, history, state) => {
        const { idempotencyKey } = advance(verdict, { ...history, ...state }).change
        expect(idempotencyKey).toBe(verdict.kind === 'resubmit' ? now.freshKey : undefined)
      }),
    )
  })

  test('a record that was not found stays in doubt, because its request may still be on its way', () => {
    const { change } = advance(unknown, { ...probing, unknownForMs: 60_001, fruitless: 5 })
    expect(change.inDoubt).toBeUndefined()
    expect(change.idempotencyKey).toBeUndefined()
  })

  test('a record that is submitted again keeps an earlier attempt in doubt', () => {
    const verdict = { kind: 'resubmit', afterMs: 0, code: 'E003', reason: 'E003' } as const
    expect(advance(verdict, { ...accepted, inDoubt: true }).change.inDoubt).not.toBe(false)
  })

  test('a poll that never left changes nothing, not even since when its transaction is unknown', () => {
    expect(stepOfUnsentPoll(submission({ ...accepted, unknownForMs: 5 }), 'stopped')).toEqual({
      change: { state: 'accepted', transactionId: 'tx', pollInMs: 0, polledRarely: false, unknown: true },
      cause: 'never_asked',
      message: 'never asked: stopped',
      pause: null,
    })
    expect(stepOfUnsentPoll(submission(probing), 'stopped').change).toMatchObject({
      state: 'sending',
      unknown: false,
    })
  })
})

describe('in the ledger', () => {
  const rows = openForFile(openAnyRow)

  test('the database accepts the step of any verdict for any submission', async () => {
    await fc.assert(
      fc.asyncProperty(anyVerdict(), anyHistory, fc.boolean(), async (verdict, history, isProbing) => {
        const polled = await rows.polled(history, isProbing)
        const step = toTrackStep(polled, verdict, {
          nextPollDelayMs: 1_000,
          freshKey: randomUUID(),
          ageAskedMs: polled.ageMs,
          ageAnsweredMs: polled.ageMs + 10,
        })
        expect(await rows.write(polled, step)).toBe(step.change.state)
      }),
      { numRuns: process.env.LONG ? 1_000 : 60 },
    )
  })
})

function anyVerdict(): fc.Arbitrary<TrackVerdict> {
  const reason = anyMessage
  const code = fc.option(fc.string())
  const afterMs = fc.double({ min: 0, max: 1e7, noNaN: true })
  return fc.oneof(
    fc.record({ kind: fc.constant('completed' as const), result: fc.option(fc.json()) }),
    fc.record({ kind: fc.constant('failed' as const), code, reason }),
    fc.record({ kind: fc.constant('lost' as const), idByPerson: fc.boolean(), reason }),
    fc.record({ kind: fc.constant('uncertain' as const), code: fc.string(), reason }),
    fc.constant({ kind: 'pending' as const }),
    fc.record({
      kind: fc.constant('ask-again' as const),
      afterMs,
      unknown: fc.boolean(),
      reason,
      breach: fc.constant(null),
    }),
    fc.record({
      kind: fc.constant('resubmit' as const),
      afterMs,
      code: fc.constantFrom('E002', 'E003'),
      reason,
    }),
    fc.record({ kind: fc.constant('new-token' as const), ofAge: fc.boolean(), reason }),
    fc.record({
      kind: fc.constant('pause' as const),
      pause: fc.record({
        reason: fc.constantFrom(
          ...pauseReasons.filter((each) => each !== 'operator' && each !== 'history' && each !== 'standby'),
        ),
        askedMs: fc.option(fc.nat()),
        detail: fc.string(),
      }),
    }),
  )
}
