import pg from 'pg'
import { startPrivatePostgres } from '../../embedded/privatePostgres.ts'
import { type DatabasePlace, isEmbedded } from '../sandboxSettings.ts'

interface SandboxDatabase {
  readonly url: string
  readonly failed: Promise<string>
  close(): Promise<void>
}

/** @throws DataFolderUnusable, or Error if the embedded server cannot start */
export async function openDatabase(settings: DatabasePlace): Promise<SandboxDatabase> {
  const { databaseUrl, dataDir } = settings
  if (databaseUrl !== undefined && !isEmbedded(settings)) {
    return { url: databaseUrl, failed: new Promise(() => {}), async close() {} }
  }
  const server = await startPrivatePostgres(dataDir)
  return { url: server.url, failed: server.failed, close: server.stop }
}

/** Less than `query_timeout`, so that the server's error arrives first. */
interface Limits {
  max: number
  statement_timeout: number
  lock_timeout: number
  query_timeout: number
}

/** Answers within seconds, also if a table is locked. */
export const requestPoolLimits: Limits = {
  max: 6,
  statement_timeout: 5_000,
  lock_timeout: 1_000,
  query_timeout: 15_000,
}

export const controlPoolLimits: Limits = {
  max: 2,
  statement_timeout: 60_000,
  lock_timeout: 5_000,
  query_timeout: 65_000,
}

const patienceAtEndMs = 300

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
    // Without a listener, a connection that Postgres ends would end this process.
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

/** The database does not answer in time, or another sandbox has it. */
export class DatabaseAway extends Error {
  override name = 'DatabaseAway'
  readonly mayBeStored: boolean

  constructor(what: string, mayBeStored: boolean, cause?: unknown) {
    super(what, { cause })
    this.mayBeStored = mayBeStored
  }
}

/** Makes `pool.query` throw DatabaseAway. For repeatable statements. */
function throwAway(pool: pg.Pool): void {
  const query = pool.query.bind(pool) as (...given: unknown[]) => Promise<unknown>
  const told = (...given: unknown[]) =>
    query(...given).catch((error: unknown) => {
      throw wrapAsDatabaseAway(error, false)
    })
  pool.query = told as typeof pool.query
}

/** @throws DatabaseAway; nothing was written */
export async function takeConnection(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw wrapAsDatabaseAway(error, false)
  }
}

/** SQLSTATEs about the database, not about a statement. 25006 is read-only. */
const ofTheDatabase = /^(08|25006|40|53|55|57|58)/

/** SQLSTATEs that end a session, perhaps after its commit. */
const ofTheSession = /^(08|57P|58)/

/**
 * Wraps an error, unless a statement or its values are the cause. @param isCommitting true if a commit may have been
 * under way
 */
export function wrapAsDatabaseAway(error: unknown, isCommitting: boolean): unknown {
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

/** Writes to stderr once when the database goes away and once when it is back. */
export class Outage {
  readonly #closing: AbortSignal
  #isTold = false

  constructor(closing: AbortSignal) {
    this.#closing = closing
  }

  reportDown(error: DatabaseAway): void {
    if (this.#isTold || this.#closing.aborted) return
    this.#isTold = true
    process.stderr.write(
      `sandbox: the database cannot be used: ${error.message}. Requests get 503 E003 until it is back.\n`,
    )
  }

  reportUp(): void {
    if (!this.#isTold) return
    this.#isTold = false
    process.stderr.write('sandbox: the database is back.\n')
  }
}

/** Microseconds since 1970; exact, because extract() gives a numeric. */
export const microsecondsSql = (column: string) => `(extract(epoch from ${column}) * 1000000)::bigint`

/** Exact below 2^53 microseconds. */
export const timeOfMicrosecondsSql = (column: string) => `timestamptz 'epoch' + ${column} * interval '1 microsecond'`

/** Postgres cannot store U+0000. */
export function replaceNulCharacters(text: string | null): string | null {
  return text?.replaceAll('\u0000', '\ufffd') ?? null
}
