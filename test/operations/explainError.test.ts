import { expect, test } from 'vitest'
import { explainError } from '../../src/operations/explainError.ts'
import { DatabaseUnusable } from '../../src/postgres/database.ts'

const messageFor = (code: string | undefined, text: string) =>
  explainError(new DatabaseUnusable('postgres://db/erp', text, Object.assign(new Error(text), code && { code })))
    .message

test.each([
  ['ECONNREFUSED', 'connect ECONNREFUSED'],
  ['57P03', 'the database system is starting up'],
  [undefined, 'Connection terminated unexpectedly'],
])('if the database is away (%s), the message says to check its server and address', (code, text) => {
  expect(messageFor(code, text)).toMatch(/Check that its server runs and that the address is right/)
})

test('a daemon that gave up does not promise to go on by itself', () => {
  const away = new DatabaseUnusable(
    'postgres://db/erp',
    'refused',
    Object.assign(new Error(), { code: 'ECONNREFUSED' }),
  )
  const run = { name: 'run', onlyLooks: false, mayChange: true }
  expect(explainError(away, run).message).toMatch(/This daemon has stopped: start it again/)
})

test('a server that takes no writes: says why, and what to set', () => {
  const refused = Object.assign(new Error('cannot execute INSERT in a read-only transaction'), { code: '25006' })
  const message = `${refused.message}. This server takes no writes: it is a standby, or default_transaction_read_only is on. Set DATABASE_URL to the primary.`
  expect(explainError(refused)).toEqual({ message, exitCode: 1 })
  expect(messageFor('25006', refused.message)).toBe(`the database of DATABASE_URL at db/erp cannot be used: ${message}`)
})

const pause = { name: 'pause', onlyLooks: false, mayChange: true }

test.each([
  new Error('Query read timeout'),
  new Error('Connection terminated unexpectedly'),
  Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' }),
  Object.assign(new Error('terminating connection due to administrator command'), { code: '57P01' }),
])('a command that got no answer (%s) may take effect, and says how to see that', (error) => {
  const wrapped = new DatabaseUnusable('postgres://db/erp', error.message, error)
  for (const lost of [error, wrapped]) {
    const { message, exitCode } = explainError(lost, pause)
    expect(message).toContain(`${error.message}. The database gave no answer, so this may have been done`)
    expect(exitCode).toBe(1)
    expect(explainError(lost, { ...pause, mayChange: false }).message).not.toContain('may have been done')
  }
})

test.each([
  Object.assign(new Error('connect ETIMEDOUT'), { code: 'ETIMEDOUT', syscall: 'connect' }),
  new Error('timeout exceeded when trying to connect'),
  Object.assign(new Error('deadlock detected'), { code: '40P01' }),
])('a command whose statement was refused or never left (%s) has done nothing, and says nothing else', (error) => {
  expect(explainError(error, pause).message).not.toContain('may have been done')
})

test.each([
  ['55P03', 'End that session, then run the command again'],
  ['53300', 'sorry, too many clients already'],
  ['57014', 'canceling statement due to statement timeout'],
  ['40P01', 'deadlock detected'],
])('if the database answers with %s, the message does not say that its server may be down', (code, text) => {
  expect(messageFor(code, text)).toBe(`the database of DATABASE_URL at db/erp cannot be used: ${text}`)
})
