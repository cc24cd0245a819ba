import type { EventEmitter } from 'node:events'
import pg from 'pg'
import { createSchemaRenamer, sessionNameOf } from './ledgerSchema.ts'
import { createCharacterReplacer } from './serverEncoding.ts'
import { applySessionSettings, statementMeaningSettings, textFormatSettings } from './sessionSettings.ts'

/** A function if user name and password may change. It is asked before each connection. */
export type DatabaseUrl = string | (() => string)

export const currentUrl = (url: DatabaseUrl): string => (typeof url === 'string' ? url : url())

export interface PoolOptions {
  url: DatabaseUrl
  name: string
  connections: number
  /** Called if an idle connection broke. The pool replaces the connection. */
  onIdleError?: (error: Error) => void
  /** Settings in addition to `sessionSettings`. */
  settings?: Record<string, string>
  /** If true, commits survive a crash, whatever the server's settings. */
  durable?: boolean
  /** True for the ERP's database. Its names are looked up in the catalog only, unless `withSearchPathOfRole` is used. */
  isErp?: boolean
  /** Prepares repeated statements. Use it only if no other role can change the tables. */
  prepares?: boolean
  limits?: { connectMs: number; statementMs: number; answerMs: number }
}

const usualLimits = { connectMs: 5_000, statementMs: 20_000, answerMs: 25_000 }

type Path = 'catalog' | 'role'
const catalogPath = 'pg_catalog, pg_temp'

/** Sets the path for one transaction, because a pooler's session serves other clients, too. */
const setCatalogPathLocally = `set local search_path = ${catalogPath}`

/** Looks up temporary tables last, because another client of the pooler may have left one named like a table of the ERP. */
function setRolePathLocally(rolePath: string): string {
  const names = [...rolePath.matchAll(/"((?:[^"]|"")*)"|[^\s,]+/g)]
  const schemas = names.map(([plain, quoted]) => quoted?.replaceAll('""', '"') ?? plain.toLowerCase()).filter(Boolean)
  return `set local search_path = ${[...schemas, 'pg_temp'].map(pg.escapeIdentifier).join(', ')}`
}

/**
 * Applies our settings to each new session. A pooler such as pgbouncer lends a session for one transaction, with what
 * other clients have set in it. So through a pooler each transaction applies the settings, and each single statement
 * runs in a transaction.
 */
export class SessionPool extends pg.Pool {
  readonly #options: PoolOptions
  readonly #settings: Record<string, string>
  readonly #begun = new WeakSet<object>()
  /** The search path that our sessions of the ERP's database have now. */
  readonly #paths = new WeakMap<object, Path>()
  #rolePath: string | null = null
  #isPooled = false
  readonly roleSearchPathSessions = new RoleSearchPathSessions(this)

  constructor(options: PoolOptions) {
    const { limits = usualLimits } = options
    const url = currentUrl(options.url)
    super({
      application_name: sessionNameOf(url, options.name),
      connectionString: url,
      max: options.connections,
      keepAlive: true,
      connectionTimeoutMillis: limits.connectMs,
      query_timeout: limits.answerMs,
      // Replaces old sessions, because a session that only reads does not notice when its server becomes a standby.
      maxLifetimeSeconds: 300,
      Client: LedgerClient,
    })
    this.#options = options
    this.#settings = {
      statement_timeout: String(limits.statementMs),
      idle_in_transaction_session_timeout: '10000',
      jit: 'off', // compiling took up to 4 s
      ...options.settings,
    }
    this.on('error', options.onIdleError ?? (() => {}))
    // An error event without a listener ends the process.
    this.on('connect', (client) => void client.on('error', () => {}))
    this.query = ((text: string, values?: unknown[]) =>
      this.queryWithSearchPath('catalog', text, values)) as pg.Pool['query']
  }

  /** The statements are known after a session has connected. */
  beginSqlFor(path: Path): string {
    const settings = { ...statementMeaningSettings, ...textFormatSettings, ...this.#settings }
    const local = this.#isPooled
      ? [
          'set local role = default',
          setRolePathLocally(this.#rolePath ?? ''),
          ...Object.entries(settings).map(setLocal),
        ]
      : []
    const durable = this.#options.durable ? [committedToDiskSql] : []
    const closed = this.#options.isErp && path === 'catalog' ? [setCatalogPathLocally] : []
    return ['begin isolation level read committed', ...local, ...durable, ...closed].join('; ')
  }

  get beginSql(): string {
    return this.beginSqlFor('catalog')
  }

  async queryWithSearchPath<Row extends pg.QueryResultRow>(
    path: Path,
    text: string,
    values?: unknown[],
  ): Promise<pg.QueryResult<Row>> {
    const client = await this.connectWithSearchPath(path)
    try {
      if (this.#isPooled) await client.query(this.beginSqlFor(path))
      const result = await client.query<Row>(text, values)
      if (this.#isPooled) await client.query('commit')
      client.release()
      return result
    } catch (error) {
      const isRolledBack = this.#isPooled && error instanceof pg.DatabaseError && (await rollBack(client))
      client.release(isRolledBack ? undefined : (error as Error)) // as pg.Pool's own query does
      throw error
    }
  }

  async connectWithSearchPath(path: Path): Promise<pg.PoolClient> {
    const client = await this.#connect()
    const current = this.#paths.get(client)
    if (current === undefined || current === path) return client
    return releasingIfFailed(client, async () => {
      // As a text, because SET refuses the "" of an empty path.
      const wanted = pg.escapeLiteral(path === 'role' ? (this.#rolePath ?? '') : catalogPath)
      await client.query(`select pg_catalog.set_config('search_path', ${wanted}, false)`)
      this.#paths.set(client, path)
    })
  }

  async readRoleSearchPath(): Promise<string | null> {
    if (this.#rolePath === null && this.#options.isErp) (await this.#connect()).release()
    return this.#rolePath
  }

  override connect(): Promise<pg.PoolClient>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    const connecting = this.connectWithSearchPath('catalog')
    if (callback === undefined) return connecting
    connecting.then(
      (client) => callback(undefined, client, client.release.bind(client)),
      (error: Error) => callback(error, undefined, () => {}),
    )
    return undefined
  }

  async #connect(): Promise<pg.PoolClient> {
    Object.assign(this.options, { connectionString: currentUrl(this.#options.url) })
    const client = await super.connect()
    if (this.#begun.has(client)) return client
    return releasingIfFailed(client, async () => {
      const isOwn = await applySessionSettings(client, this.#settings)
      this.#isPooled ||= !isOwn
      if (this.#options.isErp) {
        // Through a pooler not the current value, which may be another client's.
        const path = isOwn ? 'setting' : 'reset_val'
        const { rows } = await client.query<{ path: string }>(
          `select ${path} as path from pg_catalog.pg_settings where name operator(pg_catalog.=) 'search_path'`,
        )
        this.#rolePath = rows[0]?.path ?? ''
        if (isOwn) this.#paths.set(client, 'role')
      }
      if (isOwn && this.#options.prepares) prepareStatements(client)
      this.#begun.add(client)
    })
  }
}

/** So that the pooler can keep its session. @returns false if the connection is gone */
const rollBack = (client: pg.PoolClient): Promise<boolean> =>
  client.query('rollback').then(
    () => true,
    () => false,
  )

async function releasingIfFailed(client: pg.PoolClient, work: () => Promise<void>): Promise<pg.PoolClient> {
  try {
    await work()
    return client
  } catch (error) {
    client.release(true)
    throw error
  }
}

class RoleSearchPathSessions {
  readonly #pool: SessionPool
  constructor(pool: SessionPool) {
    this.#pool = pool
  }

  get beginSql(): string {
    return this.#pool.beginSqlFor('role')
  }

  connect(): Promise<pg.PoolClient> {
    return this.#pool.connectWithSearchPath('role')
  }

  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<Row>> {
    return this.#pool.queryWithSearchPath('role', text, values)
  }
}

/**
 * Renames the ledger's schema in statements, and replaces the characters of bound values that the server's encoding
 * cannot hold.
 */
export class LedgerClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    const rename = createSchemaRenamer(typeof config === 'string' ? config : (config?.connectionString ?? ''))
    let replace: ((text: string) => string) | null = null
    // The server names its encoding when a session begins, also through a pooler.
    const { connection } = this as unknown as { connection: EventEmitter<{ parameterStatus: [ServerSetting] }> }
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'server_encoding') replace = createCharacterReplacer(parameterValue)
    })
    const holdable = (value: unknown, replaced: (text: string) => string): unknown => {
      if (Array.isArray(value)) return value.map((each) => holdable(each, replaced))
      return typeof value === 'string' ? replaced(value) : value
    }
    const query = this.query.bind(this) as (...args: unknown[]) => unknown
    const statement = (sql: string) => {
      const renamed = rename === null ? sql : rename(sql)
      return replace === null ? renamed : plainStatement(renamed)
    }
    const bound = (values: unknown) => (replace === null ? values : holdable(values, replace))
    this.query = ((first: unknown, second: unknown, ...rest: unknown[]) => {
      if (rename === null && replace === null) return query(first, second, ...rest)
      if (typeof first === 'string') return query(statement(first), bound(second), ...rest)
      const { text, values } = (first ?? {}) as { text?: unknown; values?: unknown }
      if (typeof text !== 'string') return query(first, second, ...rest)
      return query({ ...(first as object), text: statement(text), values: bound(values) }, second, ...rest)
    }) as typeof this.query
  }
}

/** The ellipsis is the only character beyond ASCII in our statements. Some encodings cannot hold it. */
const plainStatement = (sql: string) => sql.replaceAll('…', '.')

interface ServerSetting {
  parameterName: string
  parameterValue: string
}

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: boolean | Error) => void,
) => void

/** Keeps a stronger setting, such as waiting for a standby. */
export const committedToDiskSql = `select set_config('synchronous_commit', 'local', true) where current_setting('synchronous_commit') = 'off'`

const setLocal = ([name, value]: [string, string]): string =>
  `set local ${pg.escapeIdentifier(name)} = ${pg.escapeLiteral(value)}`

/** Bounds the statements that stay prepared, because some have a different text each time. */
const preparedMax = 100

/**
 * Plans each statement once, which saves a quarter of the server's work on the ledger. Skips a text without values,
 * because it may have several statements, which cannot be prepared.
 */
function prepareStatements(client: pg.PoolClient): void {
  const names = new Map<string, string>()
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  client.query = ((text: unknown, values: unknown, ...rest: unknown[]) => {
    if (typeof text !== 'string' || !Array.isArray(values) || values.length === 0) return query(text, values, ...rest)
    if (names.size < preparedMax && !names.has(text)) names.set(text, `outboxd_${names.size + 1}`)
    const name = names.get(text)
    return name === undefined ? query(text, values, ...rest) : query({ name, text, values }, ...rest)
  }) as typeof client.query
}
