import type { EventEmitter } from 'node:events'
import pg from 'pg'
import { type DatabaseAddress, fixedDatabaseAddress } from './databaseAddress.ts'
import { createCharacterReplacement, type Replacement } from './serverEncoding.ts'
import { applySessionSettings, statementSettings, textFormatSettings } from './sessionSettings.ts'
import { errorCodeOf, isReadOnlyError } from './sqlState.ts'

export interface PoolOptions {
  url: string | DatabaseAddress
  name: string
  connections: number
  /** Called when an idle connection broke. The pool replaces it. */
  onIdleError: (error: Error) => void
  /** Beyond `statementSettings` and `textFormatSettings`. */
  settings?: Record<string, string>
  /** If true, commits survive a crash, whatever the server's settings. */
  durable?: boolean
  /**
   * For the ERP's database: names are looked up in the catalog only, or with `withSearchPathOfRole` in the role's search path.
   */
  isErp?: boolean
  /** Prepares repeated statements. Use it only if no other role can change the tables. */
  prepares?: boolean
  /** For a connection, for a statement on the server, and for its answer. */
  limits?: { connectMs: number; statementMs: number; answerMs: number }
}

const usualLimits = { connectMs: 5_000, statementMs: 20_000, answerMs: 25_000 }

/**
 * Sessions start with their settings. A pooler such as pgbouncer refuses that: then each transaction sets them, and
 * single statements go without. `outboxd check` says how to give them to the role.
 */
export class SessionPool extends pg.Pool {
  beginning: string
  readonly #options: PoolOptions
  readonly #address: DatabaseAddress
  readonly #openedAs = new WeakMap<object, number>()
  readonly #begun = new WeakSet<object>()
  /** The search path that our sessions of the ERP's database have now. */
  readonly #paths = new WeakMap<object, Path>()
  #rolePath: string | null = null
  readonly byRolePath = new RolePathSessions(this)
  #opened = 0
  /** Older sessions are closed, because one of them has shown that its server is read-only. */
  #goodFrom = 0

  constructor(options: PoolOptions) {
    const { url, limits = usualLimits } = options
    const address = typeof url === 'string' ? fixedDatabaseAddress(url) : url
    super({
      application_name: options.name,
      connectionString: address.now(),
      max: options.connections,
      keepAlive: true,
      connectionTimeoutMillis: limits.connectMs,
      query_timeout: limits.answerMs,
      // A session that only reads does not notice when its server becomes a standby.
      maxLifetimeSeconds: 300,
      ...timeoutsOf(options),
      options: startOptions(options),
      Client: EncodedClient,
    })
    this.#options = options
    this.#address = address
    this.beginning = beginningOf([], options)
    this.on('error', options.onIdleError)
    this.on('connect', (client) => {
      this.#openedAs.set(client, this.#opened++)
      // An error event without a listener ends the process.
      client.on('error', () => {})
    })
    this.on('release', (error) => {
      if (isReadOnlyError(error)) this.#goodFrom = this.#opened
    })
  }

  async connectByRolePath(): Promise<pg.PoolClient> {
    return this.#takePath(await this.#connect(), 'role')
  }

  async readRolePath(): Promise<string | null> {
    if (this.#rolePath === null && this.#options.isErp) (await this.#connect()).release()
    return this.#rolePath
  }

  async #takePath(client: pg.PoolClient, path: Path): Promise<pg.PoolClient> {
    const current = this.#paths.get(client)
    if (current === undefined || current === path) return client
    try {
      await client.query(`set search_path = ${path === 'role' ? this.#rolePath || `''` : catalogPath}`)
      this.#paths.set(client, path)
      return client
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  override connect(): Promise<pg.PoolClient>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    const connecting = this.#connect().then((client) => this.#takePath(client, 'catalog'))
    if (callback === undefined) return connecting
    connecting.then(
      (client) => callback(undefined, client, client.release.bind(client)),
      (error: Error) => callback(error, undefined, () => {}),
    )
    return undefined
  }

  async #connect(): Promise<pg.PoolClient> {
    for (;;) {
      const client = await this.#connectRenewed()
      if ((this.#openedAs.get(client) ?? this.#opened) < this.#goodFrom) client.release(true)
      else if (this.#begun.has(client)) return client
      else return this.#begin(client)
    }
  }

  async #begin(client: pg.PoolClient): Promise<pg.PoolClient> {
    try {
      const isOwn = await applySessionSettings(client)
      if (this.#options.isErp) {
        const { rows } = await client.query<{ search_path: string }>('show search_path')
        this.#rolePath = rows[0]?.search_path ?? ''
        if (isOwn) this.#paths.set(client, 'role')
      }
      if (isOwn && this.#options.prepares) prepareRepeatedStatements(client)
      this.#begun.add(client)
      return client
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  async #connectRenewed(): Promise<pg.PoolClient> {
    const address = this.#address
    try {
      return await this.#connectAny()
    } catch (error) {
      if (!isSignInRefused(error)) throw error
      const options: pg.PoolConfig = this.options
      if (address.now() === options.connectionString) address.renew()
      if (address.now() === options.connectionString) throw error
      options.connectionString = address.now()
      return this.#connectAny()
    }
  }

  async #connectAny(): Promise<pg.PoolClient> {
    try {
      return await super.connect()
    } catch (error) {
      if (!isRefusedStart(error)) throw error
      const none = { options: undefined, statement_timeout: undefined, idle_in_transaction_session_timeout: undefined }
      Object.assign(this.options, none)
      const settings = { ...timeoutsOf(this.#options), ...statementSettings, ...this.#options.settings }
      this.beginning = beginningOf(Object.entries(settings).map(setLocal), this.#options)
      return super.connect()
    }
  }
}

type Path = 'catalog' | 'role'
const catalogPath = 'pg_catalog, pg_temp'

export class RolePathSessions {
  readonly #pool: SessionPool
  constructor(pool: SessionPool) {
    this.#pool = pool
  }

  get beginning(): string {
    return this.#pool.beginning.replace(closedLocally, '')
  }

  connect(): Promise<pg.PoolClient> {
    return this.#pool.connectByRolePath()
  }

  async query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<Row>> {
    const client = await this.connect()
    try {
      const result = await client.query<Row>(text, values)
      client.release()
      return result
    } catch (error) {
      client.release(error as Error) // as pg.Pool does
      throw error
    }
  }
}

/** Replaces characters that its server's encoding cannot hold, in every bound value. */
class EncodedClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    let replacement: Replacement | null = null
    // The server names its encoding when a session begins, also through a pooler.
    const { connection } = this as unknown as { connection: EventEmitter<{ parameterStatus: [ServerSetting] }> }
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'server_encoding') replacement = createCharacterReplacement(parameterValue)
    })
    const query = this.query.bind(this) as (...args: unknown[]) => unknown
    this.query = ((first: unknown, second: unknown, ...rest: unknown[]) => {
      if (replacement === null) return query(first, second, ...rest)
      const values = Array.isArray(second) ? holdable(second, replacement) : second
      if (typeof first === 'string') return query(replacement.ofStatement(first), values, ...rest)
      const { text, values: own } = (first ?? {}) as { text?: unknown; values?: unknown }
      if (typeof text !== 'string') return query(first, values, ...rest)
      const ofConfig = Array.isArray(own) ? { values: holdable(own, replacement) } : {}
      return query({ ...(first as object), text: replacement.ofStatement(text), ...ofConfig }, values, ...rest)
    }) as typeof this.query
  }
}

function holdable(values: readonly unknown[], replacement: Replacement): unknown[] {
  return values.map((value) => {
    if (Array.isArray(value)) return holdable(value, replacement)
    return typeof value === 'string' ? replacement.ofValue(value) : value
  })
}

interface ServerSetting {
  parameterName: string
  parameterValue: string
}

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: boolean | Error) => void,
) => void

const timeoutsOf = ({ limits = usualLimits }: PoolOptions) => ({
  statement_timeout: limits.statementMs,
  idle_in_transaction_session_timeout: 10_000,
})

const startOptions = ({ settings }: PoolOptions): string =>
  Object.entries({ ...statementSettings, ...settings, ...textFormatSettings })
    .map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\ ]/g, '\\$&')}`)
    .join(' ')

const beginningOf = (more: readonly string[], { durable, isErp }: PoolOptions): string =>
  ['begin isolation level read committed', ...more, ...(durable ? [committedToDisk] : [])].join('; ') +
  (isErp ? closedLocally : '')

/** In a pooler's session, only a transaction can set the path. */
const closedLocally = `; set local search_path = ${catalogPath}`

/** Keeps a stronger setting, such as waiting for a standby. */
const committedToDisk = `select set_config('synchronous_commit', 'local', true) where current_setting('synchronous_commit') = 'off'`

const setLocal = ([name, value]: [string, string | number]): string =>
  `set local ${pg.escapeIdentifier(name)} = ${pg.escapeLiteral(String(value))}`

/** 28P01 is a wrong password, 28000 an unknown role. Poolers have their own codes. */
export function isSignInRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return /^28/.test(String(errorCodeOf(error))) || /authentication/i.test(error.message)
}

function isRefusedStart(error: unknown): boolean {
  return error instanceof Error && /unsupported startup parameter/.test(error.message)
}

const timesBefore = 3
/** Bounded, because some statements have a different text each time. */
const preparedMax = 60
const countedMax = 200

type Client = Pick<pg.ClientBase, 'query'>

/**
 * Plans each repeated statement once, which saves a quarter of the server's work on the ledger. A text without values
 * may have several statements, which cannot be prepared.
 */
export function prepareRepeatedStatements(client: Client): void {
  const times = new Map<string, number>()
  const names = new Map<string, string>()
  const query = client.query.bind(client) as (...args: unknown[]) => unknown

  function nameOf(text: string): string | undefined {
    const known = names.get(text)
    if (known !== undefined || names.size >= preparedMax) return known
    const count = (times.get(text) ?? 0) + 1
    if (count > timesBefore) {
      times.delete(text)
      names.set(text, `repeated_${names.size + 1}`)
    } else if (count > 1 || times.size < countedMax) times.set(text, count)
    else times.clear()
    return names.get(text)
  }

  client.query = ((text: unknown, values: unknown, ...rest: unknown[]) => {
    const name = typeof text === 'string' && Array.isArray(values) && values.length > 0 ? nameOf(text) : undefined
    return name === undefined ? query(text, values, ...rest) : query({ name, text, values }, ...rest)
  }) as typeof client.query
}
