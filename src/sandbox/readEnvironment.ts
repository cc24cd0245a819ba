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
  tokenLifetimeSeconds: { names: ['SANDBOX_TOKEN_LIFETIME_SECONDS'], read: asNumber },
  unknownCustomers: { names: ['SANDBOX_UNKNOWN_CUSTOMERS'], read: asList },
  processingTime: { names: ['SANDBOX_PROCESSING_TIME'], read: asText },
  failureShare: { names: ['SANDBOX_FAILURE_SHARE'], read: asNumber },
  failureCode: { names: ['SANDBOX_FAILURE_CODE'], read: asText },
  seed: { names: ['SANDBOX_SEED'], read: asNumber },
  down: { names: ['SANDBOX_DOWN'], read: asFlag },
  expiresInUnit: { names: ['SANDBOX_EXPIRES_IN_UNIT'], read: asText },
  expiresInForm: { names: ['SANDBOX_EXPIRES_IN_FORM'], read: asText },
  tokenForm: { names: ['SANDBOX_TOKEN_FORM'], read: asText },
  tokenType: { names: ['SANDBOX_TOKEN_TYPE'], read: asText },
  tokenMoreFields: { names: ['SANDBOX_TOKEN_MORE_FIELDS'], read: asFlag },
  tokenHeldSeconds: { names: ['SANDBOX_TOKEN_HELD_SECONDS'], read: asNumber },
  wrongSecretStatus: { names: ['SANDBOX_WRONG_SECRET_STATUS'], read: asNumber },
  tokenErrorShape: { names: ['SANDBOX_TOKEN_ERROR_SHAPE'], read: asText },
  errorShape: { names: ['SANDBOX_ERROR_SHAPE'], read: asText },
  unauthorizedShape: { names: ['SANDBOX_UNAUTHORIZED_SHAPE'], read: asText },
  wwwAuthenticate: { names: ['SANDBOX_WWW_AUTHENTICATE'], read: asText },
  addressStatus: { names: ['SANDBOX_ADDRESS_STATUS'], read: asNumber },
  addressNamed: { names: ['SANDBOX_ADDRESS_NAMED'], read: asFlag },
  wrongMethodStatus: { names: ['SANDBOX_WRONG_METHOD_STATUS'], read: asNumber },
  tooLargeStatus: { names: ['SANDBOX_TOO_LARGE_STATUS'], read: asNumber },
  unknownIdStatus: { names: ['SANDBOX_UNKNOWN_ID_STATUS'], read: asNumber },
  oddIdStatus: { names: ['SANDBOX_ODD_ID_STATUS'], read: asNumber },
  e001Status: { names: ['SANDBOX_E001_STATUS'], read: asNumber },
  invalidCustomerCode: { names: ['SANDBOX_INVALID_CUSTOMER_CODE'], read: asText },
  e002Status: { names: ['SANDBOX_E002_STATUS'], read: asNumber },
  e003Status: { names: ['SANDBOX_E003_STATUS'], read: asNumber },
  e003RetryAfterSeconds: { names: ['SANDBOX_E003_RETRY_AFTER_SECONDS'], read: asNumber },
  retryAfterForm: { names: ['SANDBOX_RETRY_AFTER_FORM'], read: asText },
  customerIdUnit: { names: ['SANDBOX_CUSTOMER_ID_UNIT'], read: asText },
  field2Empty: { names: ['SANDBOX_FIELD2_EMPTY'], read: asFlag },
  field2LengthMax: { names: ['SANDBOX_FIELD2_LENGTH_MAX'], read: asNumber },
  mappedFields: { names: ['SANDBOX_MAPPED_FIELDS'], read: asText },
  mappedFieldsRequired: { names: ['SANDBOX_MAPPED_FIELDS_REQUIRED'], read: asFlag },
  amountForm: { names: ['SANDBOX_AMOUNT_FORM'], read: asText },
  dateFractions: { names: ['SANDBOX_DATE_FRACTIONS'], read: asFlag },
  dateOffsets: { names: ['SANDBOX_DATE_OFFSETS'], read: asText },
  orderItems: { names: ['SANDBOX_ORDER_ITEMS'], read: asText },
  idempotency: { names: ['SANDBOX_IDEMPOTENCY'], read: asText },
  idempotencyHeaders: { names: ['SANDBOX_IDEMPOTENCY_HEADERS'], read: asList },
  ownIds: { names: ['SANDBOX_OWN_IDS'], read: asText },
  transactionIdForm: { names: ['SANDBOX_TRANSACTION_ID_FORM'], read: asText },
  firstStatus: { names: ['SANDBOX_FIRST_STATUS'], read: asText },
  resultShape: { names: ['SANDBOX_RESULT_SHAPE'], read: asText },
  errorCodeShown: { names: ['SANDBOX_ERROR_CODE_SHOWN'], read: asFlag },
  orderFirstStatus: { names: ['SANDBOX_ORDER_FIRST_STATUS'], read: asText },
  orderLastStatus: { names: ['SANDBOX_ORDER_LAST_STATUS'], read: asText },
  createdAtOnRead: { names: ['SANDBOX_CREATED_AT_ON_READ'], read: asFlag },
  rateLimitScope: { names: ['SANDBOX_RATE_LIMIT_SCOPE'], read: asText },
  rateLimitKind: { names: ['SANDBOX_RATE_LIMIT_KIND'], read: asText },
  rateLimitPolls: { names: ['SANDBOX_RATE_LIMIT_POLLS'], read: asFlag },
  rateLimitTokens: { names: ['SANDBOX_RATE_LIMIT_TOKENS'], read: asFlag },
  rateLimitOrders: { names: ['SANDBOX_RATE_LIMIT_ORDERS'], read: asText },
  rateLimitRefused: { names: ['SANDBOX_RATE_LIMIT_REFUSED'], read: asFlag },
  remainingHeader: { names: ['SANDBOX_REMAINING_HEADER'], read: asText },
  clockSkewSeconds: { names: ['SANDBOX_CLOCK_SKEW_SECONDS'], read: asNumber },
  keepAliveSeconds: { names: ['SANDBOX_KEEP_ALIVE_SECONDS'], read: asNumber },
  compression: { names: ['SANDBOX_COMPRESSION'], read: asText },
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
