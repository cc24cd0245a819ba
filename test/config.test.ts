import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readConfig, readCredentials, readDatabaseConfig, withLedgerSettings } from '../src/config.ts'
import { ConfigInvalid, type Variable } from '../src/createVariableReader.ts'
import { variables } from '../src/variables.ts'
import { createAuthority } from './support/certificates.ts'

const ours = createAuthority('ours')
const client = ours.issue({ name: 'client' })
const encrypted = (key: string) =>
  String(createPrivateKey(key).export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'open' }))

const complete = {
  DATABASE_URL: 'postgres://erp:pw@db.example/erp',
  SERVICE_BASE_URL: 'https://service.example/',
  SERVICE_AUTH_URL: 'https://auth.example',
  SERVICE_CLIENT_ID: 'id',
  SERVICE_CLIENT_SECRET: 'secret',
}

describe('withLedgerSettings', () => {
  const ledgers = {
    RATE_LIMIT_REQUESTS: '7',
    RATE_LIMIT_WINDOW_SECONDS: '8',
    REQUEST_TIMEOUT_SECONDS: '9',
    TOKEN_EXPIRES_IN_UNIT: 'minutes',
    UNAVAILABLE_PAUSE_SECONDS: '10',
    UNAUTHORIZED_PAUSE_SECONDS: '11',
    STUCK_AFTER_SECONDS: '0',
    RETENTION_DAYS: '12',
    RETENTION_PAYLOAD_DAYS: '0',
    IDEMPOTENCY_HEADER: 'X-Key',
    IDEMPOTENCY_KEY_FORM: 'bare',
    UNCERTAIN_POLICY: 'resend',
    SERVER_ERRORS: 'hold',
    LEDGER_STANDBY: 'synchronous',
    KEY_ON_FAILURE: 'block',
    INSTALLATION_NAME: 'Test 2',
    CAPTURE_WINDOW: '13',
    PAYLOAD_MAX_BYTES: '5000000',
  }

  test('takes all shared variables from the ledger, and all others from the config', () => {
    const given = readConfig({ ...complete, MAX_IN_FLIGHT: '3' })
    const all = readConfig({ ...complete, MAX_IN_FLIGHT: '3', ...ledgers })
    expect(Object.keys(all.shared).sort()).toEqual(Object.keys(ledgers).sort())
    expect(withLedgerSettings(given, all.shared)).toEqual({ ...all, shared: given.shared })
  })

  test('reads no file, so that one that is missing for a moment ends no daemon', () => {
    const folder = mkdtempSync(join(tmpdir(), 'secret-'))
    const SERVICE_CLIENT_SECRET_FILE = join(folder, 'secret')
    writeFileSync(SERVICE_CLIENT_SECRET_FILE, 'secret')
    const given = readConfig({ ...complete, SERVICE_CLIENT_SECRET: undefined, SERVICE_CLIENT_SECRET_FILE })
    rmSync(folder, { recursive: true })
    expect(withLedgerSettings(given, ledgers).service.clientSecret).toBe('secret')
  })
})

describe('values that are set or left out', () => {
  test('the defaults are those that are documented', () => {
    expect(readConfig(complete)).toEqual({
      databaseUrl: complete.DATABASE_URL,
      outboxTable: 'outbox',
      ledgerStandby: 'none',
      payloadMaxBytes: 1_000_000,
      mappingsDir: join(process.cwd(), 'mappings'),
      service: {
        baseUrl: 'https://service.example',
        authUrl: 'https://auth.example',
        clientId: 'id',
        clientSecret: 'secret',
        ca: null,
        cert: null,
        key: null,
        proxy: null,
        expiresInUnitMs: 1000,
        tokenRefreshMs: 300_000,
        idempotencyHeader: 'Idempotency-Key',
        idempotencyKeyForm: 'quoted',
        requestTimeoutMs: 30_000,
        answerMaxBytes: 2_000_000,
      },
      rateLimit: { requests: 100, windowMs: 60_000 },
      maxInFlight: 8,
      discoveredContract: null,
      unavailablePauseMs: 300_000,
      unauthorizedPauseMs: 60_000,
      stuckAfterMs: 86_400_000,
      uncertainPolicy: 'hold',
      serverErrorPolicy: 'retry',
      captureWindow: 1000,
      http: { host: '127.0.0.1', port: 9464 },
      logLevel: 'info',
      logFormat: 'auto',
      tracing: null,
      shared: {
        RATE_LIMIT_REQUESTS: '100',
        RATE_LIMIT_WINDOW_SECONDS: '60',
        REQUEST_TIMEOUT_SECONDS: '30',
        TOKEN_EXPIRES_IN_UNIT: 'seconds',
        UNAVAILABLE_PAUSE_SECONDS: '300',
        UNAUTHORIZED_PAUSE_SECONDS: '60',
        STUCK_AFTER_SECONDS: '86400',
        RETENTION_DAYS: '90',
        RETENTION_PAYLOAD_DAYS: '30',
        IDEMPOTENCY_HEADER: 'Idempotency-Key',
        IDEMPOTENCY_KEY_FORM: 'quoted',
        UNCERTAIN_POLICY: 'hold',
        SERVER_ERRORS: 'retry',
        LEDGER_STANDBY: 'none',
        INSTALLATION_NAME: '',
        KEY_ON_FAILURE: 'continue',
        CAPTURE_WINDOW: '1000',
        PAYLOAD_MAX_BYTES: '1000000',
      },
    })
  })

  test('a variable that may differ between instances says why, and a secret is never compared', () => {
    for (const [name, variable] of Object.entries(variables)) {
      const { instances, secret = false }: Variable = variable
      expect(instances, name).toMatch(/^(same: (reported|refused)|own: .{12,})$/)
      if (secret) expect(instances, name).not.toBe('same: reported')
    }
  })

  test('an empty variable counts as not set', () => {
    expect(readConfig({ ...complete, MAX_IN_FLIGHT: '', SERVICE_PROXY: '' })).toEqual(readConfig(complete))
  })

  test('seconds become whole milliseconds, with decimals for compressed time', () => {
    const set = { ...complete, RATE_LIMIT_WINDOW_SECONDS: '1.001', TOKEN_EXPIRES_IN_UNIT: 'minutes' }
    expect(readConfig(set).rateLimit.windowMs).toBe(1001)
    expect(readConfig(set).service.expiresInUnitMs).toBe(60_000)
  })

  test('headers for the trace collector are names and percent-encoded values', () => {
    const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://collector:4318/'
    const OTEL_EXPORTER_OTLP_HEADERS = 'Authorization=Bearer%20a=b, x-tenant=erp'
    expect(readConfig({ ...complete, OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS }).tracing).toEqual({
      endpoint: 'http://collector:4318',
      headers: { authorization: 'Bearer a=b', 'x-tenant': 'erp' },
      serviceName: 'outboxd',
    })
  })

  test('commands that need only the databases read only their variables', () => {
    const { DATABASE_URL } = complete
    expect(readDatabaseConfig({ DATABASE_URL, SERVICE_BASE_URL: 'nonsense' }).databaseUrl).toBe(DATABASE_URL)
  })
})

describe('mistakes', () => {
  test.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'localhost:4318'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://me:hunter2@collector'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'hunter2'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'key=hunter2%'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'key=hunter2%0a'],
  ])('%s=%s is refused, and no secret is quoted', (name, value) => {
    const problems = problemsOf({ ...complete, [name]: value })
    expect(problems).toEqual([expect.stringMatching(new RegExp(`^${name} must be`))])
    expect(problems.join()).not.toContain('hunter2')
  })

  test('all mistakes are reported at once, with the names of their variables', () => {
    const problems = problemsOf({
      LEDGER_SCHEMA: 'Partner-2',
      OUTBOX_TABLE: 'a.b.c',
      SERVICE_BASE_URL: 'nonsense',
      RATE_LIMIT_REQUESTS: '1e3',
      MAX_IN_FLIGHT: '0',
      REQUEST_TIMEOUT_SECONDS: '-1',
      UNCERTAIN_POLICY: 'guess',
      HTTP_PORT: '70000',
    })
    for (const name of [
      'DATABASE_URL is required',
      'LEDGER_SCHEMA must be 1 to 41 lower-case letters',
      'OUTBOX_TABLE must be a table name',
      'SERVICE_BASE_URL must be an address',
      'SERVICE_AUTH_URL is required',
      'SERVICE_CLIENT_ID is required',
      'SERVICE_CLIENT_SECRET is required',
      'RATE_LIMIT_REQUESTS must be a whole number',
      'MAX_IN_FLIGHT must be at least 1',
      'REQUEST_TIMEOUT_SECONDS must be a number of seconds',
      'UNCERTAIN_POLICY',
      'HTTP_PORT must be at most 65535',
    ])
      expect(problems.filter((problem) => problem.startsWith(name))).toHaveLength(1)
    expect(problems).toHaveLength(12)
  })

  test('a mistaken value is quoted, except for an address that may contain a secret', () => {
    const problems = problemsOf({ ...complete, RATE_LIMIT_REQUESTS: '1e3', SERVICE_AUTH_URL: 'https://x/?key=hunter2' })
    expect(problems.find((problem) => problem.startsWith('RATE_LIMIT_REQUESTS'))).toMatch(/\(given: "1e3"\)$/)
    expect(problems.join()).not.toContain('hunter2')
  })

  test('mistakes in the databases’ variables are reported at once, even if only these are read', () => {
    expect(() => readDatabaseConfig({ LEDGER_STANDBY: 'maybe', PAYLOAD_MAX_BYTES: 'many' })).toThrow('3 mistakes')
  })

  test.each([
    'postgres://u:p@a,b/erp',
    'postgres://a:5432,b:5433/erp',
    'postgres://u@/erp?host=a%2Cb',
  ])('several hosts in one URL are refused, because the driver does not support them: %s', (url) => {
    expect(problemsOf({ ...complete, DATABASE_URL: url })).toEqual([expect.stringContaining('names several hosts')])
  })

  test('a comma in a password does not separate hosts', () => {
    const url = 'postgres://erp:p,w@db.example/erp?application_name=a,b'
    expect(readConfig({ ...complete, DATABASE_URL: url }).databaseUrl).toBe(url)
  })

  test.each([
    'postgres://erp:hun/ter2@db.example/erp',
    'postgres://erp:1/ter2@db.example/erp',
    'postgres://erp:1?ter2@db.example/erp',
    'postgres://erp:1#ter2@db.example/erp',
    'postgres://erp:p@1?ter2@db.example/erp',
    'postgres://erp:hun#ter2@db.example/erp',
    'postgres://erp@db.example:port/erp',
  ])('a database URL that is not valid is refused with what to encode, and not quoted: %s', (url) => {
    const problems = problemsOf({ ...complete, DATABASE_URL: url })
    expect(problems).toEqual([expect.stringMatching(/^DATABASE_URL is not a valid URL\. .* \/ as %2F/)])
    expect(problems.join()).not.toContain('ter2')
  })

  test.each([
    'postgres:///erp?host=/run/postgresql',
    'postgres://erp:pw@/erp?host=/run/postgresql',
    'postgres://%2Frun%2Fpostgresql/erp',
    'postgresql://erp:p%2Fw@[::1]:5433/erp?user=me@corp',
    'postgres://erp:p w%@db.example/erp',
  ])('a URL that the driver can read is accepted: %s', (url) => {
    expect(readConfig({ ...complete, DATABASE_URL: url }).databaseUrl).toBe(url)
  })

  test('a wrong DATABASE_URL is never quoted', () => {
    const problems = problemsOf({ ...complete, DATABASE_URL: 'mysql://erp:hunter2@db.example/erp' }).join('\n')
    expect(problems).toContain('DATABASE_URL must begin with postgres://')
    expect(problems).not.toContain('hunter2')
  })

  test.each([
    'https://me:hunter2@service.example',
    'https://:hunter2@service.example',
  ])('credentials in the service’s URL are refused and not quoted: %s', (address) => {
    const problems = problemsOf({ ...complete, SERVICE_BASE_URL: address }).join('\n')
    expect(problems).toMatch(/^SERVICE_BASE_URL must not contain a user name or password/)
    expect(problems).not.toContain('hunter2')
  })

  test.each([
    ['SERVICE_BASE_URL', 'https://service.example/api/v1', '/api/v1', 'https://service.example'],
    ['SERVICE_BASE_URL', 'https://service.example/partner/API/V1/', '/API/V1', 'https://service.example/partner'],
    ['SERVICE_BASE_URL', 'https://service.example/api', '/api', 'https://service.example'],
    ['SERVICE_BASE_URL', 'https://service.example/api/v1/data', '/api/v1/data', 'https://service.example'],
    ['SERVICE_BASE_URL', 'https://service.example/api/v1/orders', '/api/v1/orders', 'https://service.example'],
    ['SERVICE_BASE_URL', 'https://auth.example/oauth/token', '/oauth/token', 'https://auth.example'],
    ['SERVICE_AUTH_URL', 'https://auth.example/oauth/token', '/oauth/token', 'https://auth.example'],
    ['SERVICE_AUTH_URL', 'https://auth.example/x/oauth/', '/oauth', 'https://auth.example/x'],
  ])('a URL that ends in a path of the interface is refused (%s, %s)', (name, address, end, right) => {
    const problems = problemsOf({ ...complete, [name]: address })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(`${name} must not end in ${end}, because outboxd appends `)
    expect(problems[0]).toContain(`. Set ${right}: `)
  })

  test.each([
    'https://service.example/partner',
    'https://service.example/api/v2',
    'https://service.example/myapi',
    'https://api.example',
  ])('a URL that only resembles one with a path of the interface is accepted: %s', (address) => {
    expect(readConfig({ ...complete, SERVICE_BASE_URL: address }).service.baseUrl).toBe(address)
  })

  test.each([
    'https://service.example/?v=1',
    'https://service.example#x',
  ])('a URL to which no path can be appended is refused: %s', (address) => {
    expect(problemsOf({ ...complete, SERVICE_BASE_URL: address })).toEqual([
      expect.stringContaining('must not contain ?'),
    ])
  })

  test.each([
    'http://service.example',
    'http://10.0.0.1',
    'http://localhost.example',
    'ftp://localhost',
  ])('the service must use https, unless it is on loopback: %s is refused', (address) => {
    expect(problemsOf({ ...complete, SERVICE_AUTH_URL: address })).toEqual([expect.stringContaining('must be https')])
  })

  test.each([
    'http://localhost:8080',
    'http://127.0.0.1:8080',
    'http://[::1]:8080',
  ])('http is allowed on loopback: %s', (address) => {
    expect(readConfig({ ...complete, SERVICE_AUTH_URL: address }).service.authUrl).toBe(address)
  })

  test.each([
    readConfig,
    readDatabaseConfig,
  ])('Node told to believe any certificate is a mistake, with what to do instead', (read) => {
    expect(problemsOf({ ...complete, NODE_TLS_REJECT_UNAUTHORIZED: '0' }, read)).toEqual([
      expect.stringMatching(/^NODE_TLS_REJECT_UNAUTHORIZED=0 .*set SERVICE_CA_FILE/),
    ])
    expect(problemsOf({ ...complete, NODE_TLS_REJECT_UNAUTHORIZED: '1' }, read)).toEqual([])
  })

  test.each([
    'http://proxy.example:3128',
    'http://me:p%40ss@10.0.0.7:8080',
    'http://[::1]:3128/',
    'http://proxy.example',
  ])('%s is accepted as a proxy', (proxy) => {
    expect(readConfig({ ...complete, SERVICE_PROXY: proxy }).service.proxy).toBe(proxy)
  })

  test.each([
    'proxy.example:3128',
    'https://proxy.example',
    'socks5://proxy.example',
    'http://me:hunter2@proxy.example/path',
    'http://me:hun/ter2@proxy.example',
    'http://me:100%@proxy.example',
  ])('%s is refused as a proxy, and not quoted', (proxy) => {
    const problems = problemsOf({ ...complete, SERVICE_PROXY: proxy })
    expect(problems).toEqual([expect.stringContaining('SERVICE_PROXY must be http://host:port')])
    expect(problems.join()).not.toContain('example')
  })

  test('a client certificate without its key is a mistake', () => {
    const cert = fileWith('PEM')
    expect(problemsOf({ ...complete, SERVICE_CERT_FILE: cert })).toEqual([
      'SERVICE_CERT_FILE and SERVICE_KEY_FILE belong together: set both or neither',
    ])
  })
})

describe('files', () => {
  test.each([
    ['DATABASE_URL', 'postgres://a', (env: Env) => readConfig(env).databaseUrl],
    ['SERVICE_CLIENT_ID', 'some-id', (env: Env) => readConfig(env).service.clientId],
    ['SERVICE_PROXY', 'http://proxy.example:3128', (env: Env) => readConfig(env).service.proxy],
    ['SERVICE_CLIENT_SECRET', 'some-secret', (env: Env) => readConfig(env).service.clientSecret],
  ])('%s may be read from a file, without its last line break', (name, value, read) => {
    const env = { ...complete, [name]: undefined, [`${name}_FILE`]: fileWith(`${value}\n`) }
    expect(read(env)).toBe(value)
    const asWindowsWrites = fileWith(`\uFEFF${value}\r\n`)
    expect(read({ ...env, [`${name}_FILE`]: asWindowsWrites })).toBe(value)
    expect(read({ ...complete, [name]: `${value}\n` })).toBe(value)
  })

  test.each([
    ['a line break', 'some\nsecret'],
    ['UTF-16', Buffer.from('\uFEFFsecret', 'utf16le')],
    ['Latin-1', Buffer.from('s\u00e4cret', 'latin1')],
  ])('a secret with %s is refused with its name and its file, and not quoted', (_, content) => {
    const file = join(mkdtempSync(join(tmpdir(), 'secret-')), 'secret')
    writeFileSync(file, content)
    const problems = problemsOf({ ...complete, SERVICE_CLIENT_SECRET: undefined, SERVICE_CLIENT_SECRET_FILE: file })
    expect(problems).toEqual([
      expect.stringMatching(`^SERVICE_CLIENT_SECRET must be one line of UTF-8 text.*it was read from ${file}$`),
    ])
    expect(problems.join()).not.toContain('secret\n')
  })

  test('a secret and its file must not both be set', () => {
    const problems = problemsOf({ ...complete, SERVICE_CLIENT_SECRET_FILE: fileWith('other') })
    expect(problems).toEqual(['SERVICE_CLIENT_SECRET and SERVICE_CLIENT_SECRET_FILE are both set: set one of them'])
  })

  test('a file that cannot be read is a single mistake, with its path', () => {
    const problems = problemsOf({ ...complete, DATABASE_URL: undefined, DATABASE_URL_FILE: '/nowhere/at/all' })
    expect(problems).toEqual(['DATABASE_URL_FILE: cannot read /nowhere/at/all (ENOENT)'])
  })

  test('a secret in place of its file’s name is not quoted', () => {
    const [problem] = problemsOf({
      ...complete,
      SERVICE_CLIENT_SECRET: undefined,
      SERVICE_CLIENT_SECRET_FILE: 'c2VjcmV0',
    })
    expect(problem).toContain('SERVICE_CLIENT_SECRET_FILE: cannot read the file')
    expect(problem).not.toContain('c2VjcmV0')
  })

  test('an empty file of an optional secret counts as not set, as with systemd’s empty default', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'secret-')), 'service_proxy')
    writeFileSync(file, '\n')
    expect(readConfig({ ...complete, SERVICE_PROXY_FILE: file }).service.proxy).toBeNull()
  })

  test('an empty secret file is a mistake that names the file', () => {
    const file = fileWith('\n')
    const env = { ...complete, SERVICE_CLIENT_SECRET: undefined, SERVICE_CLIENT_SECRET_FILE: file }
    expect(problemsOf(env)).toEqual([
      expect.stringMatching(`SERVICE_CLIENT_SECRET must not be empty.*it was read from ${file}$`),
    ])
  })

  test('certificates are read from their files', () => {
    const files = {
      SERVICE_CA_FILE: fileWith(ours.cert),
      SERVICE_CERT_FILE: fileWith(client.cert),
      SERVICE_KEY_FILE: fileWith(client.key),
    }
    expect(readConfig({ ...complete, ...files }).service).toMatchObject({ ca: ours.cert, ...client })
  })

  test.each([
    ['an authority that is not a certificate', { ca: 'CA' }, 'SERVICE_CA_FILE holds no certificate'],
    ['an empty authority', { ca: '' }, 'SERVICE_CA_FILE holds no certificate'],
    [
      'a certificate cut in the middle',
      { ...client, cert: client.cert.slice(0, 300) },
      'SERVICE_CERT_FILE cannot be used with SERVICE_KEY_FILE',
    ],
    [
      'the key of a different certificate',
      { ...client, key: ours.issue({ name: 'other' }).key },
      'SERVICE_CERT_FILE cannot be used with SERVICE_KEY_FILE',
    ],
    [
      'both in the wrong files',
      { cert: client.key, key: client.cert },
      'SERVICE_CERT_FILE cannot be used with SERVICE_KEY_FILE',
    ],
    [
      'an encrypted key',
      { ...client, key: encrypted(client.key) },
      'SERVICE_CERT_FILE cannot be used with SERVICE_KEY_FILE',
    ],
  ])('%s is a mistake at the start, and the file is not quoted', (_, pem: Record<string, string>, says) => {
    const files = Object.entries(pem).map(([name, text]) => [`SERVICE_${name.toUpperCase()}_FILE`, fileWith(text)])
    const problems = problemsOf({ ...complete, ...Object.fromEntries(files) })
    expect(problems).toEqual([expect.stringContaining(says)])
    expect(problems.join()).not.toContain(client.key.split('\n')[1])
  })

  test('each kind of credentials can be read again by itself, or says why it cannot be used', () => {
    const secret = fileWith('one')
    const env = {
      ...complete,
      SERVICE_CLIENT_SECRET: '',
      SERVICE_CLIENT_SECRET_FILE: secret,
      SERVICE_CA_FILE: '/nowhere',
    }
    expect(readCredentials(env, 'secret')).toEqual({ clientId: 'id', clientSecret: 'one' })
    expect(readCredentials(env, 'authority')).toBe('SERVICE_CA_FILE: cannot read /nowhere (ENOENT)')
    writeFileSync(secret, '')
    expect(readCredentials(env, 'secret')).toContain('SERVICE_CLIENT_SECRET must not be empty')
  })
})

type Env = Record<string, string | undefined>

function problemsOf(env: Env, read: (env: Env) => unknown = readConfig): readonly string[] {
  try {
    read(env)
  } catch (error) {
    if (error instanceof ConfigInvalid) return error.problems
    throw error
  }
  return []
}

function fileWith(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'outboxd-config-')), 'value')
  writeFileSync(path, text)
  return path
}
