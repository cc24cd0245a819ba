import { expect, test } from 'vitest'
import { failureMessage } from '../../src/observe/redact.ts'

const failure = (message: string, code?: string) => Object.assign(new Error(message), code && { code })

test.each([
  [failure('permission denied for table outbox', '42501'), 'permission denied for table outbox (42501)'],
  [failure('', 'ECONNREFUSED'), 'Error (ECONNREFUSED)'],
  [failure('there is no table "outbox"'), 'there is no table "outbox"'],
])('the message of %s has its words and its code', (error, message) => {
  expect(failureMessage(error)).toBe(message)
})

test('a message contains neither the client’s data nor a password', () => {
  const data = failure('invalid input syntax for type numeric: "Müller, 12 Elm Street"', '22P02')
  expect(failureMessage(data)).toBe(
    'the database refused a value. Its message is withheld, because it may quote data: look into the log of the database (22P02)',
  )
  expect(failureMessage(failure('cannot use postgres://u:hunter2@h/db'))).not.toContain('hunter2')
})
