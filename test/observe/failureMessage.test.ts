import { expect, test } from 'vitest'
import { failureMessage } from '../../src/observe/redact.ts'

const failure = (message: string, code?: string) => Object.assign(new Error(message), code && { code })

test.each([
  [
    failure('permission denied for table outbox', '42501'),
    'a permission is missing: permission denied for table outbox (42501)',
  ],
  [failure('canceling statement due to lock timeout', '55P03'), /^another session holds a lock: /],
  [
    failure('connect ECONNREFUSED 127.0.0.1:5432', 'ECONNREFUSED'),
    /^the database cannot be reached: .* \(ECONNREFUSED\)$/,
  ],
  [failure('too many things', '54000'), 'Error: too many things (54000)'],
  [failure('there is no table "outbox"'), 'there is no table "outbox"'],
])('%s is told in words', (error, message) => {
  expect(failureMessage(error)).toEqual(typeof message === 'string' ? message : expect.stringMatching(message))
})

test('neither the client’s data nor a password is told', () => {
  const data = failure('invalid input syntax for type numeric: "Müller, 12 Elm Street"', '22P02')
  expect(failureMessage(data)).toBe('the database refuses the data: [withheld] (22P02)')
  expect(failureMessage(failure('cannot use postgres://u:hunter2@h/db'))).not.toContain('hunter2')
})
