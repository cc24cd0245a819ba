import { describe, expect, test } from 'vitest'
import {
  type EndedAttempt,
  interpretAttempt,
  interpretQuestion,
  noSilence,
  type SilentStreaks,
} from '../../../src/daemon/dispatch/interpretAttempt.ts'
import type { Answer, PauseToRaise } from '../../../src/model/service.ts'
import type { AttemptResult } from '../../../src/model/submission.ts'
import { findPauseForGetAnswer, requestOutcomeOf } from '../../../src/service/readAnswer.ts'
import { noAnswer, response } from '../../support/answers.ts'
import { asChange, type GivenChange } from '../../support/change.ts'
import { submission } from '../../support/submission.ts'

const context = { maxInFlight: 8, free: 50, ageMs: () => 0 }
const silent = noAnswer({ sent: true, cause: 'timeout' })
const pauseOf = (reason: PauseToRaise['reason']): PauseToRaise => ({ reason, askedMs: null, detail: 'x' })
const pollClaim = { requestId: '1', claimId: 'claim' }

const result = (
  answer: Answer | null,
  pause: PauseToRaise | null = null,
  change: GivenChange = { state: 'queued' },
): AttemptResult => ({
  step: { change: asChange(change), cause: 'retried', message: 'in words', pause },
  answer,
  breach: null,
})

const record = (answer: Answer | null, given: Partial<EndedAttempt> = {}): EndedAttempt => ({
  submission: submission(),
  poll: null,
  requestId: '1',
  isTrial: false,
  attempted: result(answer),
  outcome: answer && requestOutcomeOf(answer),
  ...given,
})
const poll = (answer: Answer | null, given: Partial<EndedAttempt> = {}) => record(answer, { poll: pollClaim, ...given })
const paused = (answer: Answer, reason: PauseToRaise['reason'], change?: GivenChange) => ({
  attempted: result(answer, pauseOf(reason), change),
})
/** A success without an id, as from a gateway or from a service that names its ids differently. */
const unnamed = record(response(200, {}), {
  attempted: { ...result(response(200, {}), null, { state: 'uncertain' }), breach: 'missing_id' },
})

const interpret = (attempt: EndedAttempt, before: SilentStreaks = noSilence) =>
  interpretAttempt(attempt, before, context)
const signs = (attempt: EndedAttempt, before: SilentStreaks = noSilence) =>
  interpret(attempt, before).work.answers.map(({ sign }) => sign)

describe('missing answers', () => {
  test.each<[string, EndedAttempt, SilentStreaks, SilentStreaks]>([
    ['a record unanswered', record(silent), noSilence, { requests: 1, submissions: 1 }],
    ['a poll unanswered', poll(silent), noSilence, { requests: 1, submissions: 0 }],
    ['a gateway’s answer', record(response(502)), noSilence, { requests: 1, submissions: 1 }],
    ['a success that names no transaction', unnamed, noSilence, { requests: 1, submissions: 1 }],
    ['a record answered', record(response(200, {})), { requests: 3, submissions: 3 }, noSilence],
    ['a poll answered', poll(response(200, {})), { requests: 3, submissions: 3 }, { requests: 0, submissions: 3 }],
    ['a request that never left', record(null), { requests: 3, submissions: 1 }, { requests: 3, submissions: 1 }],
  ])('counted after %s', (_, attempt, before, after) => {
    expect(interpret(attempt, before).streaks).toEqual(after)
  })

  test.each<[string, EndedAttempt, SilentStreaks, object[]]>([
    ['the fourth request in a row', poll(silent), { requests: 3, submissions: 0 }, []],
    ['the fifth request in a row', poll(silent), { requests: 4, submissions: 0 }, [{ isOfSubmission: false }]],
    ['the fifth, with a record among them', poll(silent), { requests: 4, submissions: 1 }, [{ isOfSubmission: true }]],
    [
      'the fifth record, polls being answered',
      record(silent),
      { requests: 0, submissions: 4 },
      [{ isOfSubmission: true }],
    ],
    ['the fifth success that names no transaction', unnamed, { requests: 0, submissions: 4 }, [{ isInDoubt: true }]],
    ['one of a trial', record(silent, { isTrial: true }), noSilence, [{ isOfSubmission: true }]],
  ])('open the breaker after %s', (_, attempt, before, expected) => {
    const { work } = interpret(attempt, before)
    const fails = { kind: 'fails', pause: { reason: 'unreachable' }, isOfRecord: true }
    expect(work.answers).toMatchObject(expected.map((sign) => ({ requestId: '1', sign: { ...fails, ...sign } })))
  })

  test('of fewer records are enough if fewer are sent at once', () => {
    const { work } = interpretAttempt(record(silent), noSilence, { ...context, maxInFlight: 1 })
    expect(work.answers).toHaveLength(1)
  })

  test('due to a different server are described in the pause, but not in the log', () => {
    const [sign] = signs(record(response(502)), { requests: 4, submissions: 0 })
    expect(sign).toMatchObject({ pause: { detail: expect.stringContaining('in words') } })
    expect(sign?.kind === 'fails' && sign.pause.logDetail).not.toContain('in words')
  })
})

describe('an answer says to the breaker', () => {
  const forbidden = response(403)
  const redirect = response(302)
  test.each<[string, EndedAttempt, object[]]>([
    ['nothing if it is usable', record(response(200, {})), []],
    ['nothing if the record is refused', record(response(400)), []],
    ['nothing after a 500', record(response(500)), []],
    [
      'that submissions fail, after a 503',
      record(response(503, { code: 'E003' }), paused(response(503, { code: 'E003' }), 'unavailable')),
      [
        {
          kind: 'fails',
          code: 'E003',
          isOfRecord: true,
          isOfSubmission: true,
          isInDoubt: false,
          isForbiddenGet: false,
        },
      ],
    ],
    [
      'that a record is in doubt, after a redirect',
      record(redirect, paused(redirect, 'unauthorized', { state: 'queued', inDoubt: true })),
      [{ isInDoubt: true, isOfSubmission: true }],
    ],
    [
      'that no record is the cause, if nothing left',
      record(null, paused(noAnswer({ sent: false, cause: 'network' }), 'unreachable')),
      [{ isOfRecord: false, isOfSubmission: false }],
    ],
    ['the same after a 429', record(null, paused(response(429), 'throttled')), [{ isOfRecord: false }]],
    ['that a GET is forbidden', poll(null, paused(forbidden, 'unauthorized')), [{ isForbiddenGet: true }]],
    ['that a record is forbidden', record(null, paused(forbidden, 'unauthorized')), [{ isForbiddenGet: false }]],
    ['that the trial worked', poll(response(404), { isTrial: true }), [{ kind: 'works' }]],
    ['that the trial worked, after a 500', poll(response(500), { isTrial: true }), [{ kind: 'works' }]],
    ['that the trial never left', record(null, { isTrial: true }), [{ kind: 'unknown' }]],
  ])('%s', (_, attempt, expected) => {
    expect(signs(attempt)).toMatchObject(expected)
  })

  test('nothing of a trial with a token that has to be renewed', () => {
    const attempted = result(response(401))
    const step = { ...attempted.step, cause: 'new_token' } as const
    expect(signs(record(null, { isTrial: true, attempted: { ...attempted, step } }))).toEqual([{ kind: 'unknown' }])
  })
})

describe('a question works with almost any answer', () => {
  const ask = (answer: Answer | null, mayTokenBeOld = false) => {
    const pause = answer === null ? null : findPauseForGetAnswer(answer)
    return interpretQuestion({ requestId: '3', answer, pause, mayTokenBeOld }, { requests: 4, submissions: 0 }, context)
  }

  test.each<[Answer | null, object]>([
    [response(200, { status: 'completed' }), { kind: 'works' }],
    [response(404), { kind: 'works' }],
    [response(400, 'no uuid'), { kind: 'works' }],
    [response(500), { kind: 'works' }],
    [response(403), { kind: 'fails', isForbiddenGet: true }], // the breaker takes it for an answer
    [response(503), { kind: 'fails', pause: { reason: 'unavailable' }, isForbiddenGet: false }],
    [response(429), { kind: 'fails', pause: { reason: 'throttled' } }],
    [response(302), { kind: 'fails', pause: { reason: 'unauthorized' } }],
    [response(401), { kind: 'fails', pause: { reason: 'unauthorized' } }],
    [
      response(502),
      { kind: 'fails', pause: { reason: 'unreachable', detail: expect.stringContaining('a test request got 502') } },
    ],
    [response(200, '<h1>maintenance</h1>'), { kind: 'fails', pause: { reason: 'unreachable' } }],
    [silent, { kind: 'fails', pause: { reason: 'unreachable' } }],
    [null, { kind: 'unknown' }],
  ])('%j', (answer, sign) => {
    const { work, streaks } = ask(answer)
    expect(work).toMatchObject({ transition: null, answers: [{ request: 'question', requestId: '3', sign }] })
    expect(streaks.requests).toBe(4)
  })

  test('a 401 to a token that may be old says nothing', () => {
    expect(ask(response(401), true).work.answers[0]?.sign).toEqual({ kind: 'unknown' })
  })
})

test.each([
  [49, 49],
  [50, null],
  [null, null],
])('%s requests left, with 50 that seemed free: %s is passed on', (stated, remaining) => {
  const { work } = interpretAttempt(record({ ...response(200, {}), rateRemaining: stated }), noSilence, context)
  expect(work.remaining?.requests ?? null).toBe(remaining)
})

test('a success without a body that names its id in Location is an answer', () => {
  const located = { ...response(201), json: undefined, locationId: 'T-1' }
  const { requests } = interpret(record(located), { requests: 4, submissions: 4 }).streaks
  expect(requests).toBe(0)
})

test('the step is written with the claim of its poll', () => {
  const { work } = interpret(poll(response(200, {})))
  expect(work.transition).toMatchObject({ poll: pollClaim, change: { state: 'queued' }, message: 'in words' })
})

test('the request is written with its step to be counted, as a submission or a poll, or as null if none was made', () => {
  const requestOf = (attempt: EndedAttempt) => interpret(attempt).work.transition?.request
  const tookMs = silent.tookMs
  expect(requestOf(record(silent))).toEqual({ kind: 'submit', outcome: 'timeout', tookMs })
  expect(requestOf(poll(silent))).toEqual({ kind: 'status', outcome: 'timeout', tookMs })
  expect(requestOf(poll(null))).toBeNull()
})
