import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ConfigInvalid, createVariableReader, type Environment } from './createVariableReader.ts'
import { packageFolder } from './packageFolder.ts'
import { findAuthorityFileProblemSuffix, findCertificateKeyProblem } from './pem.ts'
import { withLedgerSchema } from './postgres/ledgerSchema.ts'
import { type Contract, isUrlOnLoopback } from './variableSchemas.ts'
import { type VariableReader, variables } from './variables.ts'

/** The validated variables. Durations are in milliseconds, although the variables are in seconds. */
export type Config = ReturnType<typeof readConfig>
export type DatabaseConfig = ReturnType<typeof readDatabaseConfig>
type ServiceSettings = Config['service']
export type DiscoverConfig = ReturnType<typeof readDiscoverConfig>
export type ConsoleConfig = ReturnType<typeof readConsoleConfig>
export type { Contract }

/** @throws ConfigInvalid with all mistakes */
export function readConfig(env: Environment) {
  const reader = createReader(env)
  const { value } = reader
  return reader.done({
    ...databaseConfig(reader, env),
    service: serviceSettings(reader),
    ...sharedConfig(reader),
    maxInFlight: value('MAX_IN_FLIGHT'),
    discoveredContract: value('DISCOVERED_CONTRACT') ?? null,
    http: { host: value('HTTP_HOST'), port: value('HTTP_PORT') },
    logLevel: value('LOG_LEVEL'),
    logFormat: value('LOG_FORMAT'),
    tracing: tracingSettings(reader),
    shared: sharedValues(reader),
  })
}

/** Lays the ledger's values of the variables that all daemons share over the config. Reads no file. */
export function withLedgerSettings(config: Config, settings: Environment): Config {
  const reader = createVariableReader(variables, settings)
  return reader.done({
    ...config,
    ...sharedConfig(reader),
    ...sharedDatabaseConfig(reader),
    service: { ...config.service, ...sharedServiceSettings(reader) },
  })
}

/** Of variables that all daemons share. */
const sharedConfig = (reader: VariableReader) => ({
  rateLimit: rateLimit(reader),
  unavailablePauseMs: reader.value('UNAVAILABLE_PAUSE_SECONDS'),
  unauthorizedPauseMs: reader.value('UNAUTHORIZED_PAUSE_SECONDS'),
  /** Null if no record is ever stuck. */
  stuckAfterMs: reader.value('STUCK_AFTER_SECONDS'),
  uncertainPolicy: reader.value('UNCERTAIN_POLICY'),
  serverErrorPolicy: reader.value('SERVER_ERRORS'),
  captureWindow: reader.value('CAPTURE_WINDOW'),
})

const sharedDatabaseConfig = ({ value }: VariableReader) => ({
  payloadMaxBytes: value('PAYLOAD_MAX_BYTES'),
  ledgerStandby: value('LEDGER_STANDBY'),
})

const sharedServiceSettings = ({ value }: VariableReader) => ({
  expiresInUnitMs: { milliseconds: 1, seconds: 1000, minutes: 60_000 }[value('TOKEN_EXPIRES_IN_UNIT')],
  idempotencyHeader: value('IDEMPOTENCY_HEADER'),
  idempotencyKeyForm: value('IDEMPOTENCY_KEY_FORM'),
  requestTimeoutMs: value('REQUEST_TIMEOUT_SECONDS'),
  /** An answer may contain the whole payload and more. */
  answerMaxBytes: Math.max(1_000_000, 2 * value('PAYLOAD_MAX_BYTES')),
})

/**
 * Reads the variables of commands that do not ask the service.
 * @throws ConfigInvalid
 */
export function readDatabaseConfig(env: Environment) {
  const reader = createReader(env)
  return reader.done(databaseConfig(reader, env))
}

/** Requires only the service's URLs and credentials. @throws ConfigInvalid */
export function readDiscoverConfig(env: Environment) {
  const reader = createReader(env)
  const { value } = reader
  const isNamed = env.DATABASE_URL || env.DATABASE_URL_FILE
  return reader.done({
    service: serviceSettings(reader),
    isTest: value('SERVICE_IS_TEST') === 'yes',
    tokenUnit: value('TOKEN_EXPIRES_IN_UNIT'),
    rateLimit: rateLimit(reader),
    payloadMaxBytes: value('PAYLOAD_MAX_BYTES'),
    uncertainPolicy: value('UNCERTAIN_POLICY'),
    discoveredContract: value('DISCOVERED_CONTRACT') ?? null,
    /** The database of the ledger whose budget discover uses; null if none is named. */
    databaseUrl: isNamed ? ledgerAddress(reader) : null,
  })
}

/** @throws ConfigInvalid */
export function readConsoleConfig(env: Environment) {
  const { value, fileText, done } = createVariableReader(variables, env)
  return done({
    password: fileText('CONSOLE_PASSWORD_FILE'),
    trustHeader: value('CONSOLE_TRUST_HEADER') ?? null,
    trustProxy: value('CONSOLE_TRUST_PROXY') ?? [],
    names: value('CONSOLE_NAME') ?? [],
    colour: value('CONSOLE_COLOUR') ?? null,
  })
}

function createReader(env: Environment): VariableReader {
  const reader = createVariableReader(variables, env)
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0')
    reader.mistake(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 turns off all certificate checks. Unset it. For a certificate authority of your own, set SERVICE_CA_FILE, or sslrootcert in the URL of a database',
    )
  return reader
}

function databaseConfig(reader: VariableReader, env: Environment) {
  const { value } = reader
  return {
    databaseUrl: ledgerAddress(reader),
    outboxTable: value('OUTBOX_TABLE'),
    ...sharedDatabaseConfig(reader),
    /** An absolute path. */
    mappingsDir: mappingsFolder(value('MAPPINGS_DIR'), env),
  }
}

function ledgerAddress({ value }: VariableReader): string {
  const [url, schema] = [value('DATABASE_URL'), value('LEDGER_SCHEMA')]
  // A wrong variable has no value. The reader reports it later, with all others.
  return url && schema && withLedgerSchema(url, schema)
}

const rateLimit = ({ value }: VariableReader) => ({
  requests: value('RATE_LIMIT_REQUESTS'),
  windowMs: value('RATE_LIMIT_WINDOW_SECONDS'),
})

function serviceSettings(reader: VariableReader) {
  const { value } = reader
  return {
    baseUrl: value('SERVICE_BASE_URL'),
    authUrl: value('SERVICE_AUTH_URL'),
    ...readSecret(reader),
    ...readAuthority(reader),
    ...readCertificate(reader),
    ...readProxy(reader),
    ...sharedServiceSettings(reader),
    tokenRefreshMs: value('TOKEN_REFRESH_SECONDS'),
  }
}

/** Returns null if no collector is named. */
function tracingSettings({ value }: VariableReader) {
  const endpoint = value('OTEL_EXPORTER_OTLP_ENDPOINT')
  const headers = value('OTEL_EXPORTER_OTLP_HEADERS') ?? {}
  const serviceName = value('OTEL_SERVICE_NAME')
  return endpoint === undefined ? null : { endpoint, headers, serviceName }
}

function sharedValues({ value }: VariableReader): Record<string, string> {
  const names = (Object.keys(variables) as (keyof typeof variables)[]).filter(
    (name) => variables[name].instances === 'same: reported',
  )
  return Object.fromEntries(names.map((name) => [name, formatInVariableUnit(name, value(name))]))
}

export function formatInVariableUnit(name: string, value: unknown): string {
  return String(name.endsWith('_SECONDS') ? Number(value ?? 0) / 1000 : value)
}

export type Credentials = Pick<ServiceSettings, 'clientId' | 'clientSecret' | 'ca' | 'cert' | 'key' | 'proxy'>

/** The settings that a running daemon reads again. */
export type LiveSettings = Credentials & Pick<Config, 'databaseUrl'>

const readSecret = ({ value }: VariableReader) => ({
  clientId: value('SERVICE_CLIENT_ID'),
  clientSecret: value('SERVICE_CLIENT_SECRET'),
})

function readAuthority({ fileText, mistake }: VariableReader) {
  const ca = fileText('SERVICE_CA_FILE')
  const problem = ca === null ? null : findAuthorityFileProblemSuffix(ca)
  if (problem !== null) mistake(`SERVICE_CA_FILE ${problem}`)
  return { ca }
}

function readCertificate({ fileText, together, mistake }: VariableReader) {
  together('SERVICE_CERT_FILE', 'SERVICE_KEY_FILE')
  const cert = fileText('SERVICE_CERT_FILE')
  const key = fileText('SERVICE_KEY_FILE')
  const problem = cert === null || key === null ? null : findCertificateKeyProblem(cert, key)
  if (problem !== null) mistake(problem)
  return { cert, key }
}

const readProxy = ({ value }: VariableReader) => ({ proxy: value('SERVICE_PROXY') ?? null })

const credentialReaders = {
  secret: readSecret,
  authority: readAuthority,
  certificate: readCertificate,
  proxy: readProxy,
  database: (reader: VariableReader) => ({ databaseUrl: ledgerAddress(reader) }),
}

/** The values of one part change together, or not at all. */
export type CredentialKind = keyof typeof credentialReaders
export const credentialKinds = Object.keys(credentialReaders) as CredentialKind[]
export const connectionCredentialKinds = credentialKinds.filter((kind) => kind !== 'secret')

type VariablesProblem = string

export function readCredentials(env: Environment, kind: CredentialKind): Partial<LiveSettings> | VariablesProblem {
  const reader = createVariableReader(variables, env)
  try {
    return reader.done(credentialReaders[kind](reader))
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error
    return error.problems.join('\n')
  }
}

export function readMappingsDirOrExamples(env: Environment): string {
  const { value, done } = createVariableReader(variables, env)
  return mappingsFolder(done(value('MAPPINGS_DIR')), env)
}

export function readPayloadMaxBytes(env: Environment): number {
  const { value, done } = createVariableReader(variables, env)
  return done(value('PAYLOAD_MAX_BYTES'))
}

export const exampleMappingsDir = join(packageFolder, 'mappings')

/** The folder of MAPPINGS_DIR may not exist yet. @throws ConfigInvalid */
export function readDirForNewMappings(env: Environment): string {
  const { value, done } = createVariableReader(variables, env)
  return resolve(done(value('MAPPINGS_DIR')))
}

/**
 * Falls back to the package's examples if MAPPINGS_DIR is not set, `./mappings` is missing and the service is on
 * loopback. A real service never gets requests from mapping files that you did not choose.
 */
function mappingsFolder(given: string, env: Environment): string {
  const folder = resolve(given)
  if (env.MAPPINGS_DIR || existsSync(folder) || !isUrlOnLoopback(env.SERVICE_BASE_URL)) return folder
  return exampleMappingsDir
}

/**
 * Says which mapping files are read if those of the current folder are not.
 *
 * @param environmentFile the path of the variables file if the mappings in use are in its folder, else null
 */
export function explainUnusualMappingsDir(env: Environment, environmentFile: string | null): string | null {
  const here = resolve('mappings')
  if (env.MAPPINGS_DIR) {
    const isOther = environmentFile !== null && env.MAPPINGS_DIR !== here && existsSync(here)
    return isOther ? `The mapping files next to ${environmentFile} are read, not those of ${here}.` : null
  }
  if (existsSync(here) || !isUrlOnLoopback(env.SERVICE_BASE_URL)) return null
  return `There is no folder ${here}. The examples of the package are read instead: ${exampleMappingsDir}. Set MAPPINGS_DIR to use a folder of your own.`
}
