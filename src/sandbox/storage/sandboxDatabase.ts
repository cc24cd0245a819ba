import pg from 'pg'
import { startPrivatePostgres } from '../../embedded/privatePostgres.ts'
import { type DatabasePlace, isEmbedded } from '../sandboxSettings.ts'

export interface SandboxDatabase {
  readonly url: string
  /** Resolves with what happened if a server of our own ends. */
  readonly failed: Promise<string>
  close(): Promise<void>
}

/** @throws DataFolderUnusable, or Error if no server of our own can be started */
export async function openDatabase(settings: DatabasePlace): Promise<SandboxDatabase> {
  const { databaseUrl, dataDir } = settings
  if (databaseUrl !== undefined && !isEmbedded(settings)) {
    return { url: databaseUrl, failed: new Promise(() => {}), async close() {} }
  }
  const server = await startPrivatePostgres(dataDir)
  return { url: server.url, failed: server.failed, close: server.stop }
}

/** Lower than `query_timeout`, so that we hear the server's word about a statement. */
interface Limits {
  max: number
  statement_timeout: number
  lock_timeout: number
  query_timeout: number
}

/** A request is answered within seconds, whoever holds a lock. */
export const forRequests: Limits = { max: 6, statement_timeout: 5_000, lock_timeout: 1_000, query_timeout: 15_000 }

export const forControl: Limits = { max: 2, statement_timeout: 60_000, lock_timeout: 5_000, query_timeout: 65_000 }

const patienceAtEndMs = 300

/** Connections that can be ended while one of them is busy. */
export class Connections {
  readonly pool: pg.Pool
  readonly #clients = new Set<pg.PoolClient>()

  constructor(databaseUrl: string, synchronousCommit: 'on' | 'off', limits: Limits) {
    this.pool = new pg.Pool({
      connectionString: databaseUrl,
      connectionTimeoutMillis: 5_000,
      application_name: 'outboxd sandbox',
      options: `-c synchronous_commit=${synchronousCommit}`,
      ...limits,
    })
    // Without a listener, a connection that Postgres ends would end this process; the next query takes a new one.
    this.pool.on('error', () => {})
    this.pool.on('connect', (client) => {
      client.on('error', () => {})
      this.#clients.add(client)
    })
    this.pool.on('remove', (client) => void this.#clients.delete(client))
    throwAway(this.pool)
  }

  async end(): Promise<void> {
    const impatience = setTimeout(() => {
      for (const client of this.#clients) void client.end()
    }, patienceAtEndMs)
    await this.pool.end()
    clearTimeout(impatience)
  }
}

/** The database is away, busy for longer than we wait, or another sandbox's by now. */
export class DatabaseAway extends Error {
  override name = 'DatabaseAway'
  /** Whether what was to be written may have been committed all the same. */
  readonly mayBeStored: boolean

  constructor(what: string, mayBeStored: boolean, cause?: unknown) {
    super(what, { cause })
    this.mayBeStored = mayBeStored
  }
}

/** Makes `pool.query` throw as asAway() says. For statements that may be repeated. */
function throwAway(pool: pg.Pool): void {
  const query = pool.query.bind(pool) as (...given: unknown[]) => Promise<unknown>
  const told = (...given: unknown[]) =>
    query(...given).catch((error: unknown) => {
      throw asAway(error, false)
    })
  pool.query = told as typeof pool.query
}

/** @throws DatabaseAway, before anything was written */
export async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw asAway(error, false)
  }
}

/** SQLSTATEs of the database, and not of a statement or a value. 25006: read-only. */
const ofTheDatabase = /^(08|25006|40|53|55|57|58)/

/** With these a session ends, perhaps after its commit. */
const ofTheSession = /^(08|57P|58)/

/**
 * An error as DatabaseAway, unless a statement or its values are at fault.
 *
 * @param isCommitting whether a commit may have been under way; a single statement is its own commit
 */
export function asAway(error: unknown, isCommitting: boolean): unknown {
  if (error instanceof DatabaseAway) return error
  if (!(error instanceof pg.DatabaseError)) return new DatabaseAway(messageOf(error), isCommitting, error)
  const code = error.code ?? ''
  return ofTheDatabase.test(code)
    ? new DatabaseAway(error.message, isCommitting && ofTheSession.test(code), error)
    : error
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}

/** Says on stderr that the database is away and when it is back, once each. */
export class Outage {
  readonly #closing: AbortSignal
  #isTold = false

  constructor(closing: AbortSignal) {
    this.#closing = closing
  }

  met(error: DatabaseAway): void {
    if (this.#isTold || this.#closing.aborted) return
    this.#isTold = true
    process.stderr.write(
      `sandbox: the database does not serve: ${error.message}. Requests are answered 503 E003 until it does.\n`,
    )
  }

  over(): void {
    if (!this.#isTold) return
    this.#isTold = false
    process.stderr.write('sandbox: the database serves again.\n')
  }
}

/** Microseconds since 1970, exactly: extract() gives a numeric. */
export const usSql = (column: string) => `(extract(epoch from ${column}) * 1000000)::bigint`

/** The product is exact for the next two centuries (below 2^53). */
export const timeSql = (column: string) => `timestamptz 'epoch' + ${column} * interval '1 microsecond'`

/** Postgres stores every character but this one. */
export function storable(text: string | null): string | null {
  return text?.replaceAll('\u0000', '\ufffd') ?? null
}
