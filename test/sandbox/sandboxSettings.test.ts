import { describe, expect, test } from 'vitest'
import { readSettingsFromEnvironment } from '../../src/sandbox/readEnvironment.ts'
import { SettingsWrong, startSandbox } from '../../src/sandbox/sandbox.ts'

const noFile = (path: string): string => {
  throw new Error(`no file ${path}`)
}
const database = { DATABASE_URL: 'postgres://client' }

function settings(env: Record<string, string>, overrides = {}) {
  const read = readSettingsFromEnvironment(env, noFile, overrides)
  if (read.kind === 'invalid') throw new Error(read.problems.join('\n'))
  return read.settings
}

test('if only the database is set, everything else has its default', () => {
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

test("the sandbox's own variables override the daemon's", () => {
  expect(settings({ ...database, SANDBOX_DATABASE_URL: 'postgres://own' }).databaseUrl).toBe('postgres://own')
  expect(settings({ ...database, SERVICE_CLIENT_ID: 'partner' }).clientId).toBe('partner')
  expect(settings({ ...database, SERVICE_CLIENT_ID: 'partner', SANDBOX_CLIENT_ID: 'me' }).clientId).toBe('me')
})

test('a secret may come from a file', () => {
  const read = readSettingsFromEnvironment(
    { ...database, SANDBOX_CLIENT_SECRET_FILE: '/run/secret' },
    (path) => `from ${path}\n`,
  )
  expect(read).toMatchObject({ kind: 'value', settings: { clientSecret: 'from /run/secret' } })
})

test('texts are read as numbers, lists and flags', () => {
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

test('every problem is reported at once, with the name of its variable', () => {
  const env = {
    SANDBOX_RATE_LIMIT_REQUESTS: 'many',
    SANDBOX_PROCESSING_TIME: 'soon',
    SANDBOX_DOWN: 'perhaps',
    SANDBOX_CLIENT_SECRET_FILE: '/nowhere',
  }
  const read = readSettingsFromEnvironment(env, noFile, { port: Number.NaN })
  const problems = read.kind === 'invalid' ? read.problems.join('\n') : ''
  expect(problems).toContain('SANDBOX_RATE_LIMIT_REQUESTS: ')
  expect(problems).toContain('SANDBOX_PROCESSING_TIME: must be constant:SECONDS')
  expect(problems).toContain('SANDBOX_DOWN: ')
  expect(problems).toContain('SANDBOX_CLIENT_SECRET_FILE: /nowhere cannot be read')
  expect(problems).toContain('SANDBOX_PORT: ')
  expect(problems).toContain('none of SANDBOX_DATABASE_URL, DATABASE_URL is set')
})

test.each([
  ['--seed abc', {}, { seed: Number('abc') }, 'SANDBOX_SEED: must be a whole number, 0 or more'],
  [
    'an invalid flag',
    { SANDBOX_EMBEDDED: 'yes' },
    {},
    'SANDBOX_EMBEDDED: Invalid input: expected boolean, received string',
  ],
  [
    'an invalid choice',
    { SANDBOX_IDEMPOTENCY: 'no' },
    {},
    'SANDBOX_IDEMPOTENCY: Invalid option: expected one of "e002"|"replay"|"ignore"',
  ],
  [
    'an invalid code',
    { SANDBOX_FAILURE_CODE: 'no code' },
    {},
    'SANDBOX_FAILURE_CODE: must be 1 to 20 letters, digits or underscores',
  ],
  ['an invalid port', {}, { port: 70_000 }, 'SANDBOX_PORT: Too big: expected number to be <=65535'],
])('the message about %s says what is allowed', (_what, env, overrides, problem) => {
  expect(readSettingsFromEnvironment({ ...database, ...env }, noFile, overrides)).toEqual({
    kind: 'invalid',
    problems: [problem],
  })
})

const none = 'databaseUrl: set databaseUrl, embedded or dataDir'
test.each<[string, unknown, string[]]>([
  ['nothing', undefined, [none]],
  ['an empty object', {}, [none]],
  ['a misspelt setting', { prot: 0 }, ['Unrecognized key: "prot"', none]],
  [
    'invalid settings',
    { embedded: true, port: 'x', seed: -1 },
    ['port: Invalid input: expected number, received string', 'seed: must be a whole number, 0 or more'],
  ],
  ['an invalid scenario', { embedded: true, scenario: { clok: 'system' } }, ['scenario: Unrecognized key: "clok"']],
  [
    'an invalid fault',
    { embedded: true, scenario: { faults: [{ kind: 'delay' }] } },
    ['scenario.faults.0.delayMs: Invalid input: expected number, received undefined'],
  ],
])('startSandbox with %s throws an Error with all problems', async (_what, options, problems) => {
  const error = await startSandbox(options as never).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(SettingsWrong)
  expect((error as SettingsWrong).problems.toSorted()).toEqual(problems)
  expect(String(error)).toBe(`SettingsWrong: ${(error as SettingsWrong).problems.join('\n')}`)
})

test('a window must be at least a millisecond, also for a client', () => {
  const env = {
    ...database,
    SANDBOX_RATE_LIMIT_WINDOW_SECONDS: '0.0009',
    SANDBOX_CLIENTS: '[{id: a, secret: hidden, rateLimitWindowSeconds: 1e-7}]',
  }
  const read = readSettingsFromEnvironment(env, noFile)
  expect(read.kind === 'invalid' && read.problems).toEqual([
    'SANDBOX_CLIENTS: 0.rateLimitWindowSeconds: must be at least 0.001: a millisecond',
    'SANDBOX_RATE_LIMIT_WINDOW_SECONDS: must be at least 0.001: a millisecond',
  ])
  expect(settings({ ...database, SANDBOX_RATE_LIMIT_WINDOW_SECONDS: '0.001' }).rateLimitWindowSeconds).toBe(0.001)
})

describe('several clients', () => {
  const list = '- {id: a, secret: one, rateLimitRequests: 5}\n- {id: b, secret: two}'
  const problems = (env: Record<string, string>, overrides = {}) => {
    const read = readSettingsFromEnvironment({ ...database, ...env }, noFile, overrides)
    return read.kind === 'invalid' ? read.problems : []
  }

  test('may be listed as YAML, as JSON or in a file, and override the daemon’s client', () => {
    const clients = [
      { id: 'a', secret: 'one', rateLimitRequests: 5 },
      { id: 'b', secret: 'two' },
    ]
    for (const text of [list, JSON.stringify(clients)]) {
      const read = readSettingsFromEnvironment(
        { ...database, SANDBOX_CLIENTS: text, SERVICE_CLIENT_ID: 'daemon' },
        noFile,
      )
      expect(read).toMatchObject({ kind: 'value', settings: { clients }, borrowed: [{ from: 'DATABASE_URL' }] })
    }
    const fromFile = readSettingsFromEnvironment({ ...database, SANDBOX_CLIENTS_FILE: 'clients.yaml' }, () => list)
    expect(fromFile).toMatchObject({ kind: 'value', settings: { clients } })
  })

  test.each([
    ['invalid YAML', 'a: [', 'SANDBOX_CLIENTS: must be a list'],
    ['an empty list', '[]', 'SANDBOX_CLIENTS: '],
    [
      'an id twice',
      '[{id: a, secret: hidden}, {id: a, secret: hidden}]',
      'SANDBOX_CLIENTS: two clients have the same id',
    ],
    ['a client without a secret', '[{id: a}]', 'SANDBOX_CLIENTS: 0.secret: '],
    ['a setting that is not per client', '[{id: a, secret: hidden, seed: 1}]', 'SANDBOX_CLIENTS: 0: '],
    ['an invalid setting', '[{id: a, secret: hidden, failureShare: 2}]', 'SANDBOX_CLIENTS: 0.failureShare: '],
  ])('with %s are refused with the place, and without printing a secret', (_what, text, problem) => {
    const found = problems({ SANDBOX_CLIENTS: text })
    expect(found).toEqual([expect.stringContaining(problem)])
    expect(found.join()).not.toContain('hidden')
  })

  test('cannot be combined with SANDBOX_CLIENT_ID', () => {
    expect(problems({ SANDBOX_CLIENTS: list, SANDBOX_CLIENT_ID: 'a' })).toEqual([
      'SANDBOX_CLIENTS lists all clients: SANDBOX_CLIENT_ID and SANDBOX_CLIENT_SECRET must not be set',
    ])
  })

  test('must not have the default secret beyond loopback', () => {
    const known = `${list}\n- {id: c, secret: sandbox-secret}`
    expect(problems({ SANDBOX_CLIENTS: known }, { host: '0.0.0.0' })).toHaveLength(1)
    expect(problems({ SANDBOX_CLIENTS: list }, { host: '0.0.0.0' })).toEqual([])
  })
})
