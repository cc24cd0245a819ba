import { expect, test } from 'vitest'
import { explainError } from '../../src/operations/explainError.ts'
import { DatabaseUnusable } from '../../src/postgres/database.ts'

const messageFor = (code: string | undefined, text: string) =>
  explainError(
    new DatabaseUnusable('DATABASE_URL', 'postgres://db/erp', text, Object.assign(new Error(text), code && { code })),
  ).message

test.each([
  ['ECONNREFUSED', 'connect ECONNREFUSED'],
  ['57P03', 'the database system is starting up'],
  [undefined, 'Connection terminated unexpectedly'],
])('if the database is away (%s), the message says to check its server and address', (code, text) => {
  expect(messageFor(code, text)).toMatch(/Check that its server runs and that the address is right/)
})

test('a server that takes no writes: says why, and what to set', () => {
  const refused = Object.assign(new Error('cannot execute INSERT in a read-only transaction'), { code: '25006' })
  const message = `${refused.message}. This server takes no writes: it is a standby, or default_transaction_read_only is on. Set the address (STATE_DATABASE_URL, DATABASE_URL) to the primary`
  expect(explainError(refused)).toEqual({ message, exitCode: 1 })
  expect(messageFor('25006', refused.message)).toBe(`the database of DATABASE_URL at db/erp cannot be used: ${message}`)
})

test.each([
  ['55P03', 'End that session, then run the command again'],
  ['53300', 'sorry, too many clients already'],
  ['57014', 'canceling statement due to statement timeout'],
  ['40P01', 'deadlock detected'],
])('if the database answers with %s, the message does not say that its server may be down', (code, text) => {
  expect(messageFor(code, text)).toBe(`the database of DATABASE_URL at db/erp cannot be used: ${text}`)
})
