import { describe, expect, test } from 'vitest'
import { type ConsoleAccess, readConsoleAccess } from '../../../src/console/guard/access.ts'
import { hashPassword } from '../../../src/console/guard/passwordHash.ts'

const nothing = { password: null, trustHeader: null, trustProxy: [], names: [] }
const problemsOf = (read: ReturnType<typeof readConsoleAccess>) => ('problems' in read ? read.problems.join('\n') : '')
const hash = await hashPassword('correct horse battery staple')

test.each([
  '127.0.0.1',
  'localhost',
  '::1',
  '127.8.8.8',
])('%s is open without a password, because only this machine reaches it', (host) => {
  expect(readConsoleAccess(host, nothing)).toMatchObject({ access: { kind: 'open' } })
})

test.each([
  '0.0.0.0',
  '::',
  '10.0.0.5',
  'console.example',
  '',
  '127.0.0.1.evil.example',
  '[::]',
])('beyond loopback (%j) the console needs a password or a proxy, and the message names the variables', (host) => {
  const said = problemsOf(readConsoleAccess(host, nothing))
  expect(said).toContain('CONSOLE_PASSWORD_FILE=FILE')
  expect(said).toContain('CONSOLE_TRUST_HEADER=NAME and CONSOLE_TRUST_PROXY=ADDRESS')
  expect(said).toContain('ssh -L 9465:localhost:9465')
})

test('with a password file, the console asks for the password on loopback too', () => {
  for (const host of ['127.0.0.1', '0.0.0.0'])
    expect(readConsoleAccess(host, { ...nothing, password: `${hash}\n` })).toMatchObject({
      access: { kind: 'password' },
    })
})

test.each([
  'correct horse battery staple',
  '',
  '$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$c29tZXNhbHRzb21lc2FsdA',
  '$2b$12$abc',
])('a password file with %j is refused', (password) => {
  expect(problemsOf(readConsoleAccess('127.0.0.1', { ...nothing, password }))).toContain(
    'outboxd console --hash-password',
  )
})

test('a trusted header needs a named proxy, and cannot be combined with a password', () => {
  expect(problemsOf(readConsoleAccess('0.0.0.0', { ...nothing, trustHeader: 'x-user' }))).toContain(
    'needs CONSOLE_TRUST_PROXY',
  )
  expect(problemsOf(readConsoleAccess('127.0.0.1', { ...nothing, trustProxy: ['10.0.0.7'], names: [] }))).toContain(
    'needs CONSOLE_TRUST_HEADER',
  )
  expect(
    problemsOf(
      readConsoleAccess('0.0.0.0', { password: hash, trustHeader: 'x-user', trustProxy: ['10.0.0.7'], names: [] }),
    ),
  ).toContain('are both set')
})

describe('the addresses of the proxy', () => {
  const isProxy = (trustProxy: string[], address: string) =>
    (readConsoleAccess('0.0.0.0', { ...nothing, trustHeader: 'x-user', trustProxy }) as ConsoleAccess).isProxy(address)

  test.each<[string, string, boolean]>([
    ['10.0.0.7', '10.0.0.7', true],
    ['10.0.0.7', '::ffff:10.0.0.7', true],
    ['10.0.0.7', '10.0.0.8', false],
    ['10.0.0.0/28', '10.0.0.15', true],
    ['10.0.0.0/28', '10.0.0.16', false],
    ['fd00::/64', 'fd00::1', true],
    ['fd00::/64', 'fd00:0:0:1::1', false],
    ['10.0.0.7', '', false],
  ])('with CONSOLE_TRUST_PROXY=%s, is %s the proxy: %s', (net, address, is) => {
    expect(isProxy([net], address)).toBe(is)
  })
})
