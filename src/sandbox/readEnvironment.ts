import { parse } from 'yaml'
import { optionsSchema, type SandboxSettings } from './sandboxSettings.ts'
import { plainWords } from './settingsWrong.ts'

type Read = (text: string) => unknown
const asText: Read = (text) => text
const asNumber: Read = (text) => (text.trim() === '' ? text : Number(text))
const asFlag: Read = (text) => ({ true: true, '1': true, false: false, '0': false })[text.toLowerCase()] ?? text
const asList: Read = (text) => text.split(',').flatMap((item) => item.trim() || [])
/** JSON is YAML. What is neither is left as text, which the schema refuses. */
const asYaml: Read = (text) => {
  try {
    return parse(text)
  } catch {
    return text
  }
}

/** The environment variables of each setting, first one set wins, and how its text is read. */
export const environment: Record<keyof SandboxSettings, { names: string[]; read: Read; secret?: true }> = {
  databaseUrl: { names: ['SANDBOX_DATABASE_URL', 'STATE_DATABASE_URL', 'DATABASE_URL'], read: asText, secret: true },
  embedded: { names: ['SANDBOX_EMBEDDED'], read: asFlag },
  dataDir: { names: ['SANDBOX_DATA_DIR'], read: asText },
  host: { names: ['SANDBOX_HOST'], read: asText },
  port: { names: ['SANDBOX_PORT'], read: asNumber },
  clientId: { names: ['SANDBOX_CLIENT_ID', 'SERVICE_CLIENT_ID'], read: asText, secret: true },
  clientSecret: { names: ['SANDBOX_CLIENT_SECRET', 'SERVICE_CLIENT_SECRET'], read: asText, secret: true },
  clients: { names: ['SANDBOX_CLIENTS'], read: asYaml, secret: true },
  insecureDefaults: { names: ['SANDBOX_INSECURE_DEFAULTS'], read: asFlag },
  controlToken: { names: ['SANDBOX_CONTROL_TOKEN'], read: asText, secret: true },
  bodyLimitBytes: { names: ['SANDBOX_BODY_LIMIT_BYTES'], read: asNumber },
  clock: { names: ['SANDBOX_CLOCK'], read: asText },
  startWaitSeconds: { names: ['SANDBOX_START_WAIT_SECONDS'], read: asNumber },
  requestTimeoutSeconds: { names: ['SANDBOX_REQUEST_TIMEOUT_SECONDS'], read: asNumber },
  connectionsMax: { names: ['SANDBOX_CONNECTIONS_MAX'], read: asNumber },
  scenario: { names: ['SANDBOX_SCENARIO'], read: asText },
  synchronousCommit: { names: ['SANDBOX_SYNCHRONOUS_COMMIT'], read: asText },
  rateLimitRequests: { names: ['SANDBOX_RATE_LIMIT_REQUESTS'], read: asNumber },
  rateLimitWindowSeconds: { names: ['SANDBOX_RATE_LIMIT_WINDOW_SECONDS'], read: asNumber },
  unauthenticatedRequests: { names: ['SANDBOX_UNAUTHENTICATED_REQUESTS'], read: asNumber },
  ledgerRows: { names: ['SANDBOX_LEDGER_ROWS'], read: asNumber },
  ledgerHours: { names: ['SANDBOX_LEDGER_HOURS'], read: asNumber },
  allowedAddresses: { names: ['SANDBOX_ALLOWED_ADDRESSES'], read: asList },
  addressStatus: { names: ['SANDBOX_ADDRESS_STATUS'], read: asNumber },
  tokenLifetimeSeconds: { names: ['SANDBOX_TOKEN_LIFETIME_SECONDS'], read: asNumber },
  expiresInUnit: { names: ['SANDBOX_EXPIRES_IN_UNIT'], read: asText },
  unknownCustomers: { names: ['SANDBOX_UNKNOWN_CUSTOMERS'], read: asList },
  idempotency: { names: ['SANDBOX_IDEMPOTENCY'], read: asText },
  processingTime: { names: ['SANDBOX_PROCESSING_TIME'], read: asText },
  failureShare: { names: ['SANDBOX_FAILURE_SHARE'], read: asNumber },
  failureCode: { names: ['SANDBOX_FAILURE_CODE'], read: asText },
  seed: { names: ['SANDBOX_SEED'], read: asNumber },
  invalidCustomerCode: { names: ['SANDBOX_INVALID_CUSTOMER_CODE'], read: asText },
  unknownIdStatus: { names: ['SANDBOX_UNKNOWN_ID_STATUS'], read: asNumber },
  down: { names: ['SANDBOX_DOWN'], read: asFlag },
  e002Status: { names: ['SANDBOX_E002_STATUS'], read: asNumber },
  e003Status: { names: ['SANDBOX_E003_STATUS'], read: asNumber },
  e003RetryAfterSeconds: { names: ['SANDBOX_E003_RETRY_AFTER_SECONDS'], read: asNumber },
}

export type EnvironmentRead =
  | { kind: 'value'; settings: SandboxSettings; borrowed: Borrowed[] }
  | { kind: 'invalid'; problems: string[] }

/** A setting that comes from a variable of the daemon's, because the sandbox's own is not set. */
export interface Borrowed {
  setting: keyof SandboxSettings
  from: string
  /** The variable that would go before it. */
  own: string
}

/**
 * Reads the sandbox's settings from environment variables.
 *
 * @param readFile gives the text of a file named by a variable `X_FILE`
 * @param overrides settings given otherwise, such as `--port`; they win
 * @returns the settings, or all that is wrong with the variables, one sentence each
 */
export function readEnvironment(
  env: Record<string, string | undefined>,
  readFile: (path: string) => string,
  overrides: Partial<SandboxSettings> = {},
): EnvironmentRead {
  const problems: string[] = []
  const raw: Record<string, unknown> = {}
  const takenFrom: Record<string, string> = {}
  for (const [key, { names, read, secret }] of Object.entries(environment)) {
    for (const name of names.toReversed()) {
      const text = env[name] ?? (secret ? fromFile(env, name, readFile, problems) : undefined)
      if (text) [raw[key], takenFrom[key]] = [read(text), env[name] === undefined ? `${name}_FILE` : name]
    }
  }
  if (raw.clients !== undefined) leaveOneClient(raw, takenFrom, problems)
  const given = { ...raw, ...overrides }
  const parsed = optionsSchema.safeParse(given, { error: plainWords })
  if (parsed.success && problems.length === 0) {
    return { kind: 'value', settings: parsed.data, borrowed: borrowedOf(takenFrom, overrides) }
  }
  for (const issue of parsed.error?.issues ?? []) problems.push(sentence(issue.path, issue.message, given))
  return { kind: 'invalid', problems }
}

function borrowedOf(takenFrom: Record<string, string>, overrides: Partial<SandboxSettings>): Borrowed[] {
  const settings = Object.entries(environment) as [keyof SandboxSettings, { names: string[] }][]
  return settings.flatMap(([setting, { names }]) => {
    const [from, own] = [takenFrom[setting], names[0]]
    const isBorrowed =
      from !== undefined && own !== undefined && !from.startsWith(own) && overrides[setting] === undefined
    return isBorrowed ? [{ setting, from, own }] : []
  })
}

function fromFile(
  env: Record<string, string | undefined>,
  name: string,
  readFile: (path: string) => string,
  problems: string[],
): string | undefined {
  const path = env[`${name}_FILE`]
  if (!path) return undefined
  try {
    return readFile(path).trim()
  } catch (error) {
    problems.push(`${name}_FILE: ${path} cannot be read (${error instanceof Error ? error.message : String(error)})`)
    return undefined
  }
}

/** The list of clients goes before the daemon's client; beside one of the sandbox's own it is a mistake. */
function leaveOneClient(raw: Record<string, unknown>, takenFrom: Record<string, string>, problems: string[]): void {
  for (const key of ['clientId', 'clientSecret']) {
    const from = takenFrom[key]
    if (from?.startsWith('SANDBOX_')) problems.push(`${from}: not beside SANDBOX_CLIENTS, which lists all clients`)
    delete raw[key]
    delete takenFrom[key]
  }
}

function sentence([key, ...within]: PropertyKey[], message: string, given: Record<string, unknown>): string {
  const names = environment[key as keyof SandboxSettings]?.names ?? [String(key)]
  return String(key) in given
    ? [names[0], within.join('.'), message].filter((part) => part !== '').join(': ')
    : `${names.join(' or ')} is not set; with --embedded no database is needed`
}
