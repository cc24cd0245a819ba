import { expect, test } from 'vitest'
import { requestOutcomeOf } from '../../src/service/readAnswer.ts'
import { noAnswer, response } from '../support/answers.ts'

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
