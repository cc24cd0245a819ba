import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { authorityProblem, pairProblem } from './pem.ts'
import { ConfigInvalid, type Environment, readVariables, type Variable } from './readVariables.ts'
import {
  addresses,
  type Contract,
  contract,
  file,
  headerName,
  integer,
  isOnLoopback,
  name,
  postgresUrl,
  proxyUrl,
  seconds,
  secondsOrNever,
  serviceAuthUrl,
  serviceBaseUrl,
} from './variableSchemas.ts'

/** What a POST says otherwise. */
const ownHeaders: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'transfer-encoding',
  'upgrade',
  'user-agent',
])

/** Every variable of the environment that the daemon reads: what it must look like, its default, what it is for. */
export const variables = {
  DATABASE_URL: { schema: postgresUrl, secret: true, about: 'the database with the outbox' },
  STATE_DATABASE_URL: {
    schema: postgresUrl.optional(),
    shownDefault: 'DATABASE_URL',
    secret: true,
    about: 'where the schema `outboxd` (ledger, budget) and pg-boss’s schema live',
  },
  OUTBOX_TABLE: {
    schema: z
      .string()
      .regex(/^[^.]+(\.[^.]+)?$/, 'must be a table name, or schema.name')
      .default('outbox'),
    about: 'name, or schema.name',
  },
  SERVICE_BASE_URL: {
    schema: serviceBaseUrl,
    about: '{base_url} of the service; https, or http on loopback alone',
  },
  SERVICE_AUTH_URL: {
    schema: serviceAuthUrl,
    about: '{auth_url}, the token issuer; https, or http on loopback alone',
  },
  SERVICE_IS_TEST: {
    schema: z.enum(['yes', 'no']).default('no'),
    about: 'yes: the service at SERVICE_BASE_URL is a test environment, in which `outboxd discover` may create records',
  },
  SERVICE_CLIENT_ID: { schema: name, secret: true, about: 'OAuth client id' },
  SERVICE_CLIENT_SECRET: { schema: name, secret: true, about: 'OAuth client secret' },
  SERVICE_CA_FILE: {
    schema: file.optional(),
    about:
      'PEM of the authorities that we believe of the service, instead of those that Node knows; read again while the daemon runs',
  },
  SERVICE_CERT_FILE: {
    schema: file.optional(),
    about: 'client certificate with those in between, PEM; read again, with its key, while the daemon runs',
  },
  SERVICE_KEY_FILE: { schema: file.optional(), about: 'key of the client certificate, PEM' },
  SERVICE_PROXY: {
    schema: proxyUrl.optional(),
    shownDefault: 'none',
    secret: true,
    about:
      'http://host:port of a proxy through which all requests to the service and the token issuer go (CONNECT), perhaps with user:password@; HTTPS_PROXY and its like are not used',
  },
  RATE_LIMIT_REQUESTS: {
    schema: integer(1, 10_000_000).default(100),
    about: 'requests that the service allows per window, all instances together',
  },
  RATE_LIMIT_WINDOW_SECONDS: { schema: seconds(86_400).default(60_000), about: 'length of that window' },
  REQUEST_TIMEOUT_SECONDS: { schema: seconds(3_600).default(30_000), about: 'whole request, body included' },
  MAX_IN_FLIGHT: {
    schema: integer(1, 1_000).default(8),
    about: 'requests at once, per instance; also the most that a crash can leave in doubt',
  },
  TOKEN_REFRESH_SECONDS: {
    schema: seconds(86_400).default(300_000),
    about: 'a token is renewed this long before it expires; at half its lifetime where that is shorter',
  },
  TOKEN_EXPIRES_IN_UNIT: {
    schema: z.enum(['seconds', 'milliseconds', 'minutes']).default('seconds'),
    about: 'unit of expires_in, which the interface does not show',
  },
  DISCOVERED_CONTRACT: {
    schema: contract.optional(),
    about:
      'what `outboxd discover --write` saw the service answer: `check --contract` compares with it, and the daemon counts what contradicts it',
  },
  UNAVAILABLE_PAUSE_SECONDS: { schema: seconds(86_400).default(300_000), about: 'pause after E003' },
  UNAUTHORIZED_PAUSE_SECONDS: { schema: seconds(86_400).default(60_000), about: 'pause after a second 401' },
  STUCK_AFTER_SECONDS: {
    schema: secondsOrNever(366 * 86_400).default(86_400_000),
    about: 'after so long an accepted record that the service has not ended is a problem for a person; 0: never',
  },
  RETENTION_DAYS: {
    schema: integer(0, 36_500).default(90),
    about:
      'completed and discarded records are deleted from the ledger so many days after their end, and their ids stay known; what waits for a person stays; 0 keeps all',
  },
  RETENTION_PAYLOAD_DAYS: {
    schema: integer(0, 36_500).default(30),
    about:
      'their payloads, bodies and results, which may hold personal data, are emptied so many days after their end; 0: with the record',
  },
  IDEMPOTENCY_HEADER: {
    schema: z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be the name of a header')
      .refine((name) => !ownHeaders.has(name.toLowerCase()), 'must be no header that a request has already')
      .default('Idempotency-Key'),
    about: 'header in which each POST carries its idempotency key',
  },
  UNCERTAIN_POLICY: {
    schema: z.enum(['hold', 'resend', 'probe']).default('hold'),
    about: 'what to do when nobody can know whether a request arrived: hold, resend, probe',
  },
  KEY_ON_FAILURE: {
    schema: z.enum(['continue', 'block']).default('continue'),
    about: 'whether a rejected or failed record holds back its successors of the same key: continue, block',
  },
  CAPTURE_WINDOW: {
    schema: integer(1, 1_000_000).default(1000),
    about:
      'the most submissions that are queued at once, without those held behind one that waits for a person; the rest of a backlog stays in the outbox, and so do records of one key beyond a 40th of this',
  },
  PAYLOAD_MAX_BYTES: {
    schema: integer(1, 100_000_000).default(1_000_000),
    about: 'a larger payload is rejected unread',
  },
  MAPPINGS_DIR: {
    schema: name.default('mappings'),
    about:
      'folder of the mapping files; against a service on loopback the examples of the package, where there is no such folder',
  },
  HTTP_HOST: { schema: name.default('127.0.0.1'), about: 'address of /metrics, /livez, /readyz' },
  HTTP_PORT: { schema: integer(0, 65_535).default(9464), about: 'its port; 0 takes any free one' },
  LOG_LEVEL: {
    schema: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
    about: 'JSON lines on stdout',
  },
  LOG_FORMAT: {
    schema: z.enum(['auto', 'json', 'journald']).default('auto'),
    about:
      'auto: JSON lines, each after its priority such as `<4>` where stdout is systemd’s journal, which takes that off again; json: never; journald: always',
  },
  CONSOLE_PASSWORD_FILE: {
    schema: file.optional(),
    about: 'file with the line that `outboxd console --hash-password` prints: the console asks for that password',
  },
  CONSOLE_TRUST_HEADER: {
    schema: headerName.optional(),
    about: 'header in which an authenticating proxy tells the console who has signed in, such as X-Forwarded-User',
  },
  CONSOLE_TRUST_PROXY: {
    schema: addresses.optional(),
    about:
      'addresses of the console’s proxy, such as 10.0.0.7 or 10.0.0.0/28, with commas: whose CONSOLE_TRUST_HEADER and X-Forwarded headers are believed',
  },
} as const satisfies Record<string, Variable>

/** What the commands need that touch the databases alone. Paths are absolute. */
export interface StoreConfig {
  databaseUrl: string
  stateDatabaseUrl: string
  outboxTable: string
  keyOnFailure: 'continue' | 'block'
  payloadMaxBytes: number
  mappingsDir: string
  rateLimit: { requests: number; windowMs: number }
  /** In days. Null: all is kept, or contents as long as their record. */
  retention: { days: number | null; payloadDays: number | null }
}

/** What proves who we are to the service, and whom we believe: what may be another while the daemon runs. */
export interface Credentials {
  clientId: string
  clientSecret: string
  /** PEM texts. */
  ca: string | null
  cert: string | null
  key: string | null
  /** http://host:port, perhaps with a password. */
  proxy: string | null
}

/** How the service is reached. */
export interface ServiceSettings extends Credentials {
  baseUrl: string
  authUrl: string
  expiresInUnitMs: number
  tokenRefreshMs: number
  idempotencyHeader: string
  requestTimeoutMs: number
  /** An answer may give back what was sent, and say something of it. */
  answerMaxBytes: number
}

export type { Contract }

/** What `outboxd discover` needs: the service, and what the daemon assumes of it as it is configured. */
export interface DiscoverConfig {
  service: ServiceSettings
  isTest: boolean
  tokenUnit: 'seconds' | 'milliseconds' | 'minutes'
  rateLimit: { requests: number; windowMs: number }
  payloadMaxBytes: number
  uncertainPolicy: 'hold' | 'resend' | 'probe'
  /** What was discovered before; null where that is not known. */
  discoveredContract: Contract | null
  /** Where the ledger is, from whose budget is spent; null where no database is named. */
  stateDatabaseUrl: string | null
}

/** The validated environment. Every duration is in milliseconds, though the variable says seconds. */
export interface Config extends StoreConfig {
  service: ServiceSettings
  maxInFlight: number
  discoveredContract: Contract | null
  unavailablePauseMs: number
  unauthorizedPauseMs: number
  /** Null: never. */
  stuckAfterMs: number | null
  uncertainPolicy: 'hold' | 'resend' | 'probe'
  captureWindow: number
  http: { host: string; port: number }
  logLevel: string
  logFormat: 'auto' | 'json' | 'journald'
}

/**
 * Reads the whole configuration.
 *
 * @param env the environment's variables; an empty one counts as not set
 * @throws ConfigInvalid with every mistake
 * @see README.md, "Configuration": its table is this file’s
 */
export function readConfig(env: Environment): Config {
  const reader = readVariables(variables, env)
  const { value, mistake, done } = reader
  refuseBlindTrust(env, mistake)
  const config: Config = {
    ...storeConfig(reader, env),
    service: serviceSettings(reader),
    maxInFlight: value('MAX_IN_FLIGHT'),
    discoveredContract: value('DISCOVERED_CONTRACT') ?? null,
    unavailablePauseMs: value('UNAVAILABLE_PAUSE_SECONDS'),
    unauthorizedPauseMs: value('UNAUTHORIZED_PAUSE_SECONDS'),
    stuckAfterMs: value('STUCK_AFTER_SECONDS'),
    uncertainPolicy: value('UNCERTAIN_POLICY'),
    captureWindow: value('CAPTURE_WINDOW'),
    http: { host: value('HTTP_HOST'), port: value('HTTP_PORT') },
    logLevel: value('LOG_LEVEL'),
    logFormat: value('LOG_FORMAT'),
  }
  return done(config)
}

type Reader = ReturnType<typeof readVariables<typeof variables>>

const readSecret = ({ value }: Reader) => ({
  clientId: value('SERVICE_CLIENT_ID'),
  clientSecret: value('SERVICE_CLIENT_SECRET'),
})

function readAuthority({ fileText, mistake }: Reader, inForce: Partial<Credentials> = {}) {
  const ca = fileText('SERVICE_CA_FILE')
  const problem = ca === null || ca === inForce.ca ? null : authorityProblem(ca)
  if (problem !== null) mistake(`SERVICE_CA_FILE ${problem}`)
  return { ca }
}

function readCertificate({ fileText, together, mistake }: Reader, inForce: Partial<Credentials> = {}) {
  together('SERVICE_CERT_FILE', 'SERVICE_KEY_FILE')
  const cert = fileText('SERVICE_CERT_FILE')
  const key = fileText('SERVICE_KEY_FILE')
  const isInForce = cert === inForce.cert && key === inForce.key
  const problem = cert === null || key === null || isInForce ? null : pairProblem(cert, key)
  if (problem !== null) mistake(problem)
  return { cert, key }
}

const readProxy = ({ value }: Reader) => ({ proxy: value('SERVICE_PROXY') ?? null })

const credentialReaders = {
  secret: readSecret,
  authority: readAuthority,
  certificate: readCertificate,
  proxy: readProxy,
}

/** What is taken into force together, or not at all. */
export type CredentialPart = keyof typeof credentialReaders
export const credentialParts = Object.keys(credentialReaders) as CredentialPart[]
/** What a connection is made with. */
export const connectionParts = ['authority', 'certificate', 'proxy'] as const satisfies CredentialPart[]

/**
 * Reads a part of the credentials again.
 *
 * @param inForce has been judged: where the same is read, nobody looks into it a second time
 * @returns in words what keeps it from being used, where something does
 */
export function readCredentials(
  env: Environment,
  part: CredentialPart,
  inForce: Partial<Credentials> = {},
): Partial<Credentials> | string {
  return readAgain<Partial<Credentials>>(env, (reader) => credentialReaders[part](reader, inForce))
}

/** Where the databases are, with the names and passwords by which we sign in. */
export type DatabaseUrls = Pick<StoreConfig, 'databaseUrl' | 'stateDatabaseUrl'>

const databaseUrls = ({ value }: Reader): DatabaseUrls => {
  const databaseUrl = value('DATABASE_URL')
  return { databaseUrl, stateDatabaseUrl: value('STATE_DATABASE_URL') ?? databaseUrl }
}

/** Reads them again. @returns in words what keeps them from being used, where something does */
export const readDatabaseUrls = (env: Environment): DatabaseUrls | string => readAgain(env, databaseUrls)

function readAgain<T>(env: Environment, read: (reader: Reader) => T): T | string {
  const reader = readVariables(variables, env)
  try {
    return reader.done(read(reader))
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error
    return error.problems.join('\n')
  }
}

/**
 * Reads the variables that commands on the databases need, and leaves the service's alone.
 *
 * @throws ConfigInvalid with every mistake among them
 */
export function readStoreConfig(env: Environment): StoreConfig {
  const reader = readVariables(variables, env)
  refuseBlindTrust(env, reader.mistake)
  return reader.done(storeConfig(reader, env))
}

/** Node’s own variable would have us believe any certificate, of the databases too. */
function refuseBlindTrust(env: Environment, mistake: (sentence: string) => void): void {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED !== '0') return
  mistake(
    'NODE_TLS_REJECT_UNAUTHORIZED=0 lets anybody pass for the service or a database: unset it. Where the service’s certificate is of an authority of your own, set SERVICE_CA_FILE; for a database, sslrootcert in its URL',
  )
}

/**
 * Reads what `outboxd discover` needs. A database may be named, and need not: whoever has but credentials can ask.
 *
 * @throws ConfigInvalid with every mistake among them
 */
export function readDiscoverConfig(env: Environment): DiscoverConfig {
  const reader = readVariables(variables, env)
  const { value, mistake, done } = reader
  refuseBlindTrust(env, mistake)
  const isNamed = env.DATABASE_URL || env.DATABASE_URL_FILE
  return done({
    service: serviceSettings(reader),
    isTest: value('SERVICE_IS_TEST') === 'yes',
    tokenUnit: value('TOKEN_EXPIRES_IN_UNIT'),
    rateLimit: { requests: value('RATE_LIMIT_REQUESTS'), windowMs: value('RATE_LIMIT_WINDOW_SECONDS') },
    payloadMaxBytes: value('PAYLOAD_MAX_BYTES'),
    uncertainPolicy: value('UNCERTAIN_POLICY'),
    discoveredContract: value('DISCOVERED_CONTRACT') ?? null,
    stateDatabaseUrl: value('STATE_DATABASE_URL') ?? (isNamed ? value('DATABASE_URL') : null),
  })
}

/** Who may look at the console, as it is set. */
export interface ConsoleConfig {
  /** What the file of the password holds. */
  password: string | null
  /** In lower case. */
  trustHeader: string | null
  /** Addresses, or nets as 10.0.0.0/28. */
  trustProxy: readonly string[]
}

/** @throws ConfigInvalid with every mistake among them */
export function readConsoleConfig(env: Environment): ConsoleConfig {
  const { value, fileText, done } = readVariables(variables, env)
  return done({
    password: fileText('CONSOLE_PASSWORD_FILE'),
    trustHeader: value('CONSOLE_TRUST_HEADER') ?? null,
    trustProxy: value('CONSOLE_TRUST_PROXY') ?? [],
  })
}

/** @returns the folder of the mapping files, for who needs nothing else. @throws ConfigInvalid */
export function readMappingsDir(env: Environment): string {
  const { value, done } = readVariables(variables, env)
  return mappingsFolder(done(value('MAPPINGS_DIR')), env)
}

/** Examples, which come with the package. */
const exampleMappings = join(import.meta.dirname, '..', 'mappings')

/**
 * Where none was named and the usual folder is not here, the examples serve to try out the sandbox. A real service is sent
 * nothing by mappings that nobody has chosen.
 */
function mappingsFolder(given: string, env: Environment): string {
  const folder = resolve(given)
  if (env.MAPPINGS_DIR || existsSync(folder) || !isOnLoopback(env.SERVICE_BASE_URL)) return folder
  return exampleMappings
}

function serviceSettings(reader: Reader): ServiceSettings {
  const { value } = reader
  return {
    baseUrl: value('SERVICE_BASE_URL'),
    authUrl: value('SERVICE_AUTH_URL'),
    ...readSecret(reader),
    ...readAuthority(reader),
    ...readCertificate(reader),
    ...readProxy(reader),
    expiresInUnitMs: { milliseconds: 1, seconds: 1000, minutes: 60_000 }[value('TOKEN_EXPIRES_IN_UNIT')],
    tokenRefreshMs: value('TOKEN_REFRESH_SECONDS'),
    idempotencyHeader: value('IDEMPOTENCY_HEADER'),
    requestTimeoutMs: value('REQUEST_TIMEOUT_SECONDS'),
    answerMaxBytes: Math.max(1_000_000, 2 * value('PAYLOAD_MAX_BYTES')),
  }
}

function storeConfig(reader: Reader, env: Environment): StoreConfig {
  const { value } = reader
  return {
    ...databaseUrls(reader),
    outboxTable: value('OUTBOX_TABLE'),
    keyOnFailure: value('KEY_ON_FAILURE'),
    payloadMaxBytes: value('PAYLOAD_MAX_BYTES'),
    mappingsDir: mappingsFolder(value('MAPPINGS_DIR'), env),
    rateLimit: { requests: value('RATE_LIMIT_REQUESTS'), windowMs: value('RATE_LIMIT_WINDOW_SECONDS') },
    retention: { days: value('RETENTION_DAYS') || null, payloadDays: value('RETENTION_PAYLOAD_DAYS') || null },
  }
}
