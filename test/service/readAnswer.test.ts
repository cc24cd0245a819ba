import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Answer } from '../../src/model/service.ts'
import {
  findPauseForGetAnswer,
  readPauseFromTokenAnswer,
  readSubmitAnswer,
  requestOutcomeOf,
} from '../../src/service/readAnswer.ts'
import { anyAnswer, noAnswer, response } from '../support/answers.ts'

test.each([
  [response(200), 'ok'],
  [response(201), 'ok'],
  [response(200, { status: 'failed', errorCode: 'E003' }), 'ok'],
  [response(400, { code: 'E001' }), 'rejected'],
  [response(404), 'rejected'],
  [response(409, { code: 'E002' }), 'rejected'],
  [response(401), 'unauthorized'],
  [response(403), 'unauthorized'],
  [response(307), 'unauthorized'],
  [response(407), 'unauthorized'],
  [response(401, { code: 'E003' }), 'unauthorized'],
  [response(429), 'throttled'],
  [response(503), 'unavailable'],
  [response(400, { code: 'E003' }), 'unavailable'],
  [response(500, { code: 'E003' }), 'unavailable'],
  [response(500), 'server_error'],
  [response(504), 'server_error'],
  [noAnswer({ sent: true, cause: 'timeout' }), 'timeout'],
  [noAnswer({ sent: false, cause: 'network' }), 'network'],
] as const)('%j counts as %s', (answer, outcome) => {
  expect(requestOutcomeOf(answer)).toBe(outcome)
})

test.each([
  [response(400, { error: 'invalid_grant' }), 'unauthorized', /invalid_grant.*SERVICE_CLIENT_ID/],
  [response(401, { error: 'invalid_client' }), 'unauthorized', /invalid_client.*SERVICE_CLIENT_SECRET/],
  [response(403), 'unauthorized', /allow-list/],
  [response(404), 'unauthorized', /SERVICE_AUTH_URL/],
  [response(302, '(redirect to https://login) '), 'unauthorized', /https:\/\/login.*SERVICE_AUTH_URL/],
  [response(429, '', 9_000), 'throttled', /429/],
  [response(503), 'unavailable', /503/],
  [response(500, { code: 'E003' }), 'unavailable', /E003/],
  [response(401, { code: 'E003' }), 'unauthorized', /E003.*SERVICE_CLIENT_ID/],
  [response(407), 'unauthorized', /407/],
  [response(303, '', 9_000), 'unauthorized', /SERVICE_AUTH_URL/],
  [response(500), 'unreachable', /500/],
  [response(502), 'unreachable', /502/],
  [response(200, 'what?'), 'unreachable', /without a usable token/],
  [noAnswer({ sent: true, cause: 'timeout' }), 'unreachable', /asking for a token/],
  [noAnswer({ sent: false, cause: 'network' }), 'unreachable', /asking for a token/],
] as const)('%j: pause %s', (answer, reason, detail) => {
  expect(readPauseFromTokenAnswer(answer)).toMatchObject({ reason, detail: expect.stringMatching(detail) })
})

test('any answer without a token leads to a pause with a message', () => {
  fc.assert(
    fc.property(anyAnswer, (answer) => {
      expect(readPauseFromTokenAnswer(answer).detail).not.toBe('')
    }),
  )
})

const pausesOf = (answer: Answer) => [
  readSubmitAnswer(answer, 'data').pause,
  findPauseForGetAnswer(answer),
  readPauseFromTokenAnswer(answer),
]

test.each([
  [429, '', 'throttled'],
  [503, '', 'unavailable'],
  [503, { code: 'E003' }, 'unavailable'],
  [400, { code: 'E003' }, 'unavailable'],
] as const)('the Retry-After of a %i %j is honoured up to 5 min, for a POST, a GET and a token', (status, body, reason) => {
  for (const [retryAfterMs, askedMs] of [
    [null, null],
    [0, 0],
    [299_000, 299_000],
    [300_000, 300_000],
    [301_000, 300_000],
    [86_400_000, 300_000],
  ] as const)
    for (const pause of pausesOf(response(status, body, retryAfterMs))) expect(pause).toMatchObject({ reason, askedMs })
})

test.each([403, 307])('the Retry-After of a %i is not honoured', (status) => {
  for (const pause of pausesOf(response(status, '', 9_000)))
    expect(pause).toMatchObject({ reason: 'unauthorized', askedMs: null })
})
