import { describe, expect, test } from 'vitest'
import {
  type EndedAttempt,
  type FailureStreaks,
  interpretAttempt,
  interpretTrialWithoutRecord,
  type JudgedTrial,
  noFailureStreaks,
  resetUnansweredStreaks,
} from '../../../src/daemon/dispatch/interpretAttempt.ts'
import type { Answer, PauseToRaise } from '../../../src/model/service.ts'
import type { AttemptResult, State } from '../../../src/model/submission.ts'
import { judgeTrialAnswer, requestOutcomeOf } from '../../../src/service/readAnswer.ts'
import { noAnswer, response } from '../../support/answers.ts'
import { submission } from '../../support/submission.ts'

const circumstances = { maxInFlight: 8, free: 50, ageMs: () => 0 }
const silent = noAnswer({ sent: true, cause: 'timeout' })
const throttled: PauseToRaise = { reason: 'throttled', askedMs: 1_000, detail: 'x' }
const pollClaim = { requestId: '1', claimId: 'claim' }

const result = (answer: Answer | null, pause: PauseToRaise | null = null, state: State = 'queued'): AttemptResult => ({
  step: { change: { state } as AttemptResult['step']['change'], cause: 'retried', message: 'in words', pause },
  answer,
  breach: null,
})
const judge = (answer: Answer, hasTokenExpired = false): JudgedTrial => ({
  verdict: judgeTrialAnswer(answer),
  hasTokenExpired,
})

const record = (answer: Answer | null, given: Partial<EndedAttempt> = {}): EndedAttempt => ({
  submission: submission(),
  poll: null,
  trial: false,
  attempted: result(answer),
  fingerprint: null,
  outcome: answer && requestOutcomeOf(answer),
  judged: null,
  ...given,
})
const poll = (answer: Answer | null, given: Partial<EndedAttempt> = {}) => record(answer, { poll: pollClaim, ...given })
/** A success without an id, as from a gateway or from a service that names its ids differently. */
const unnamed = record(response(200, {}), {
  attempted: { ...result(response(200, {}), null, 'uncertain'), breach: 'missing_id' },
})
const trialPoll = (answer: Answer) => poll(answer, { trial: true, judged: judge(answer) })
const streaks = (given: Partial<FailureStreaks>): FailureStreaks => ({ ...noFailureStreaks, ...given })

const interpret = (attempt: EndedAttempt, before: FailureStreaks = noFailureStreaks) =>
  interpretAttempt(attempt, before, circumstances)

describe('missing answers', () => {
  test.each([
    ['a record unanswered', record(silent), {}, { silentRequests: 1, silentPosts: 1 }],
    ['a poll unanswered', poll(silent), {}, { silentRequests: 1, silentPosts: 0 }],
    ['a gateway’s answer', record(response(502)), {}, { silentRequests: 1, silentPosts: 1 }],
    ['a success that names no transaction', unnamed, {}, { silentRequests: 1, silentPosts: 1 }],
    ['a record answered', record(response(200, {})), { silentRequests: 3, silentPosts: 3 }, {}],
    ['a poll answered', poll(response(200, {})), { silentRequests: 3, silentPosts: 3 }, { silentPosts: 3 }],
    ['a request that never left', record(null), { silentRequests: 3 }, { silentRequests: 3 }],
    [
      'a pause of its own',
      record(silent, { attempted: result(silent, throttled) }),
      { silentRequests: 3 },
      { silentRequests: 3 },
    ],
    ['a trial', trialPoll(silent), { silentRequests: 3 }, { silentRequests: 3 }],
  ] as [
    string,
    EndedAttempt,
    Partial<FailureStreaks>,
    Partial<FailureStreaks>,
  ][])('counted after %s: %#', (_, attempt, before, after) => {
    expect(interpret(attempt, streaks(before)).streaks).toEqual(streaks(after))
  })

  test.each([
    ['the fourth request in a row', poll(silent), { silentRequests: 3 }, []],
    ['the fifth request in a row', poll(silent), { silentRequests: 4 }, ['unreachable']],
    ['the fifth record, polls being answered', record(silent), { silentPosts: 4 }, ['unreachable']],
    [
      'a pause of its own',
      record(silent, { attempted: result(silent, throttled) }),
      { silentRequests: 4 },
      ['throttled'],
    ],
    ['the fifth success that names no transaction', unnamed, { silentPosts: 4 }, ['unreachable']],
    ['a trial', trialPoll(silent), { silentRequests: 9 }, []],
  ] as [
    string,
    EndedAttempt,
    Partial<FailureStreaks>,
    string[],
  ][])('lead to pauses after %s: %#', (_, attempt, before, reasons) => {
    const { work, shouldResetStreaks: endsSilence } = interpret(attempt, streaks(before))
    expect(work.pauses.map(({ reason }) => reason)).toEqual(reasons)
    expect(endsSilence).toBe(reasons.length > 0)
  })

  test('of fewer records are enough if fewer are sent at once', () => {
    const { work } = interpretAttempt(record(silent), noFailureStreaks, { ...circumstances, maxInFlight: 1 })
    expect(work.pauses).toHaveLength(1)
  })

  test('due to a different server are described in the pause', () => {
    const [pause] = interpret(record(response(502)), streaks({ silentRequests: 4 })).work.pauses
    expect(pause).toMatchObject({ answeredByOther: true, detail: expect.stringContaining('in words') })
  })

  test('are counted from 0 once the pause is written; refused tokens are not', () => {
    expect(resetUnansweredStreaks({ silentRequests: 5, silentPosts: 5, trialTokensRefused: 1 })).toEqual(
      streaks({ trialTokensRefused: 1 }),
    )
  })
})

describe('the first record after a trial', () => {
  test.each([
    ['unanswered', silent, [true]],
    ['answered by something else, perhaps for this record alone', response(502), [undefined]],
    ['answered', response(200, {}), []],
  ])('%s: its pauses have a long backoff %#', (_, answer, patient) => {
    const { work } = interpret(record(answer, { trial: true }))
    expect(work).toMatchObject({ trialEnded: true, trialSucceeded: false })
    expect(work.pauses.map((pause) => pause.hasLongBackoff)).toEqual(patient)
  })
})

describe('a poll that is sent as a trial', () => {
  test.each([
    ['a success', response(200, {}), true],
    ['a refusal', response(404), true],
    ['a server’s error', response(500), false],
    ['no answer', silent, false],
    ['a refused token', response(401), false],
  ])('%s: ends the pauses %#', (_, answer, trialSucceeded) => {
    expect(interpret(trialPoll(answer)).work).toMatchObject({ trialSucceeded, trialEnded: true, pauses: [] })
  })

  test('that calls for a pause neither ends nor prolongs pauses, because only that poll may be refused', () => {
    const attempted = result(response(429), throttled)
    const { work, shouldResetStreaks: endsSilence } = interpret(poll(null, { trial: true, attempted }))
    expect(work).toMatchObject({ trialSucceeded: false, trialEnded: true, pauses: [] })
    expect(endsSilence).toBe(false)
  })
})

describe('a harmless request as a trial', () => {
  const ask = (answer: Answer | null, before: Partial<FailureStreaks> = {}, isTokenOutlived = false) =>
    interpretTrialWithoutRecord(
      answer && { answer, judged: judge(answer, isTokenOutlived) },
      streaks(before),
      circumstances,
    )

  test.each([
    ['a refusal', response(404), {}, { trialSucceeded: true }, 0],
    [
      'a pause',
      response(429),
      { trialTokensRefused: 1 },
      { trialSucceeded: false, pauses: [{ reason: 'throttled' }] },
      0,
    ],
    ['no answer', silent, {}, { trialSucceeded: false, pauses: [{ reason: 'unreachable' }] }, 0],
    ['a request that never left', null, { trialTokensRefused: 1 }, { trialSucceeded: false, pauses: [] }, 1],
    ['the first 401', response(401), {}, { trialSucceeded: false, pauses: [] }, 1],
    ['the second 401', response(401), { trialTokensRefused: 1 }, { pauses: [{ reason: 'unauthorized' }] }, 2],
  ] as [
    string,
    Answer | null,
    Partial<FailureStreaks>,
    object,
    number,
  ][])('%s: %#', (_, answer, before, work, tokensRefused) => {
    const interpretation = ask(answer, before)
    expect(interpretation.work).toMatchObject({ transition: null, trialEnded: true, ...work })
    expect(interpretation.streaks).toEqual(streaks({ trialTokensRefused: tokensRefused }))
    expect(interpretation.shouldResetStreaks).toBe(false)
  })

  test('a 401 due to the token’s age does not count, and the token is still dropped', () => {
    const { work, streaks: after, isTokenRefused } = ask(response(401), {}, true)
    expect([work.pauses, after.trialTokensRefused, isTokenRefused]).toEqual([[], 0, true])
  })

  test('requests without an answer stay counted', () => {
    expect(ask(response(404), { silentRequests: 4 }).streaks.silentRequests).toBe(4)
  })
})

describe('what a record’s answer says about others', () => {
  const others = (answer: Answer, state: State, fingerprint: string | null) => {
    const attempted = result(answer, null, state)
    const { answeredRecords, refusals } = interpret(record(answer, { attempted, fingerprint })).work
    return { passages: answeredRecords.length, refusals: refusals.length }
  }

  test.each([
    ['accepted', response(200, { transactionId: 'tx' }), 'accepted', null, { passages: 1, refusals: 0 }],
    ['rejected under a code', response(400, { code: 'E001' }), 'rejected', null, { passages: 1, refusals: 0 }],
    ['rejected in words', response(400, { detail: 'no' }), 'rejected', 'print', { passages: 1, refusals: 1 }],
    ['refused by a gateway', response(400, '<h1>no</h1>'), 'rejected', 'print', { passages: 0, refusals: 1 }],
    ['unanswered', silent, 'uncertain', null, { passages: 0, refusals: 0 }],
  ] as [string, Answer, State, string | null, object][])('%s', (_, answer, state, fingerprint, expected) => {
    expect(others(answer, state, fingerprint)).toEqual(expected)
  })

  test('nothing if it is a poll’s', () => {
    const { answeredRecords, refusals } = interpret(poll(response(200, {}), { fingerprint: 'print' })).work
    expect([answeredRecords, refusals]).toEqual([[], []])
  })
})

test.each([
  [49, 49],
  [50, null],
  [null, null],
])('%s requests left, with 50 that seemed free: %s is passed on', (rateRemaining, remaining) => {
  expect(interpret(record({ ...response(200, {}), rateRemaining })).work.remaining?.requests ?? null).toBe(remaining)
})

test('a 401 drops the token, whatever the request was', () => {
  expect([record, poll, trialPoll].map((of) => interpret(of(response(401))).isTokenRefused)).toEqual([true, true, true])
  expect(interpret(record(response(403))).isTokenRefused).toBe(false)
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
