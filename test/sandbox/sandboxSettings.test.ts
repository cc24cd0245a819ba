import { expect, test } from 'vitest'
import { readEnvironment } from '../../src/sandbox/sandboxSettings.ts'

const noFile = (path: string): string => {
  throw new Error(`no file ${path}`)
}
const database = { DATABASE_URL: 'postgres://client' }

function settings(env: Record<string, string>, overrides = {}) {
  const read = readEnvironment(env, noFile, overrides)
  if (read.kind === 'invalid') throw new Error(read.problems.join('\n'))
  return read.settings
}

test('with a database alone, everything else has its default', () => {
  expect(settings(database)).toMatchObject({
    databaseUrl: 'postgres://client',
    host: '127.0.0.1',
    port: 8080,
    clientId: 'sandbox',
    clientSecret: 'sandbox-secret',
    rateLimitRequests: 100,
    rateLimitWindowSeconds: 60,
    allowedAddresses: ['127.0.0.1', '::1'],
    idempotency: 'e002',
    bodyLimitBytes: 262_144,
  })
})

test("the sandbox has its own variables first, then the daemon's", () => {
  expect(settings({ ...database, STATE_DATABASE_URL: 'postgres://state' }).databaseUrl).toBe('postgres://state')
  expect(settings({ ...database, SANDBOX_DATABASE_URL: 'postgres://own' }).databaseUrl).toBe('postgres://own')
  expect(settings({ ...database, SERVICE_CLIENT_ID: 'partner' }).clientId).toBe('partner')
  expect(settings({ ...database, SERVICE_CLIENT_ID: 'partner', SANDBOX_CLIENT_ID: 'me' }).clientId).toBe('me')
})

test('a secret may come from a file', () => {
  const read = readEnvironment({ ...database, SANDBOX_CLIENT_SECRET_FILE: '/run/secret' }, (path) => `from ${path}\n`)
  expect(read).toMatchObject({ kind: 'value', settings: { clientSecret: 'from /run/secret' } })
})

test('text becomes numbers, lists and flags', () => {
  const env = {
    ...database,
    SANDBOX_RATE_LIMIT_WINDOW_SECONDS: '0.5',
    SANDBOX_ALLOWED_ADDRESSES: '10.0.0.1, ::1',
    SANDBOX_DOWN: 'true',
    SANDBOX_PROCESSING_TIME: 'humps:0.8:2-5:120-300',
  }
  expect(settings(env, { port: 0 })).toMatchObject({
    rateLimitWindowSeconds: 0.5,
    allowedAddresses: ['10.0.0.1', '::1'],
    down: true,
    port: 0,
  })
})

test('everything that is wrong is reported at once, by the name of its variable', () => {
  const env = {
    SANDBOX_RATE_LIMIT_REQUESTS: 'many',
    SANDBOX_PROCESSING_TIME: 'soon',
    SANDBOX_DOWN: 'perhaps',
    SANDBOX_CLIENT_SECRET_FILE: '/nowhere',
  }
  const read = readEnvironment(env, noFile, { port: Number.NaN })
  const problems = read.kind === 'invalid' ? read.problems.join('\n') : ''
  expect(problems).toContain('SANDBOX_RATE_LIMIT_REQUESTS: ')
  expect(problems).toContain('SANDBOX_PROCESSING_TIME: must be constant:SECONDS')
  expect(problems).toContain('SANDBOX_DOWN: ')
  expect(problems).toContain('SANDBOX_CLIENT_SECRET_FILE: /nowhere cannot be read')
  expect(problems).toContain('SANDBOX_PORT: ')
  expect(problems).toContain('SANDBOX_DATABASE_URL or STATE_DATABASE_URL or DATABASE_URL is not set')
})
