import { expect, test } from 'vitest'
import { findMistypedVariables } from '../../../src/commands/terminal/environment.ts'

test.each([
  ['RATE_LIMIT_REQEUSTS', 'RATE_LIMIT_REQUESTS'],
  ['RTAE_LIMIT_REQUESTS', 'RATE_LIMIT_REQUESTS'],
  ['rate_limit_requests', 'RATE_LIMIT_REQUESTS'],
  ['RATE_LIMIT_WINDOW', 'RATE_LIMIT_WINDOW_SECONDS'],
  ['REQUEST_TIMEOUT', 'REQUEST_TIMEOUT_SECONDS'],
  ['SERVICE_CLIENT_SECRET_FIEL', 'SERVICE_CLIENT_SECRET_FILE'],
  ['DATABSE_URL', 'DATABASE_URL'],
  ['LOGLEVEL', 'LOG_LEVEL'],
])('%s is reported as a misspelt %s', (name, meant) => {
  expect(findMistypedVariables({ [name]: 'x' })).toEqual([
    `the variable ${name} is not one of outboxd's; did you mean ${meant}?`,
  ])
})

test.each([
  'RATE_LIMIT_REQUESTS',
  'DATABASE_URL_FILE',
  'HTTP_PROXY',
  'HTTPS_PORT',
  'SANDBOX_RATE_LIMIT_REQUESTS',
  'SANDBOX_CLIENT_ID',
  'SERVICE_NAME',
  'PATH',
  'HOME',
  'PORT',
  'NODE_ENV',
  'LOG_FILE',
  'KUBERNETES_SERVICE_HOST',
])('%s is not reported', (name) => {
  expect(findMistypedVariables({ [name]: 'x' })).toEqual([])
})

test('the value of a misspelt variable is not printed, and an empty variable is not reported', () => {
  expect(findMistypedVariables({ SERVICE_CLIENT_SECRTE: 'hunter2' }).join()).not.toContain('hunter2')
  expect(findMistypedVariables({ RATE_LIMIT_REQEUSTS: '' })).toEqual([])
})
