import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type PrivatePostgres, startPrivatePostgres } from '../../embedded/privatePostgres.ts'
import { type DatabasePlace, isEmbedded } from '../sandboxSettings.ts'

/** @throws Error if the embedded PostgreSQL cannot start */
export async function openDatabase(settings: DatabasePlace): Promise<Omit<PrivatePostgres, 'pid'>> {
  const { databaseUrl, dataDir } = settings
  if (databaseUrl !== undefined && !isEmbedded(settings)) {
    return { url: databaseUrl, failed: new Promise(() => {}), async stop() {} }
  }
  return startPrivatePostgres(dataDir)
}

/**
 * The pool's `query` throws DatabaseAway, and is only for statements that may be repeated. Because of the timeouts, a
 * request is answered within seconds, even if a table is locked.
 */
export function openPool(databaseUrl: string, synchronousCommit: 'on' | 'off'): pg.Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    connectionTimeoutMillis: 5_000,
    application_name: 'outboxd sandbox',
    options: `-c synchronous_commit=${synchronousCommit}`,
    max: 6,
    lock_timeout: 1_000,
    statement_timeout: 15_000,
    query_timeout: 20_000, // more than statement_timeout, so that the server's error arrives first
  })
  // Without a listener, a connection that Postgres ends would end this process.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const query = pool.query.bind(pool) as (...given: unknown[]) => Promise<unknown>
  pool.query = ((...given: unknown[]) =>
    query(...given).catch((error: unknown) => {
      throw wrapAsDatabaseAway(error, false)
    })) as typeof pool.query
  return pool
}

const patienceAtEndMs = 300

/** Does not wait for a session that hangs. */
export async function endPool(pool: pg.Pool): Promise<void> {
  await Promise.race([pool.end(), delay(patienceAtEndMs)])
}

/** `mayBeStored`: a commit may have succeeded. */
export class DatabaseAway extends Error {
  override name = 'DatabaseAway'
  readonly mayBeStored: boolean

  constructor(what: string, mayBeStored: boolean, cause?: unknown) {
    super(what, { cause })
    this.mayBeStored = mayBeStored
  }
}

/** @throws DatabaseAway. Nothing was written then. */
export async function takeConnection(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw wrapAsDatabaseAway(error, false)
  }
}

/** SQLSTATEs of errors whose cause is the database, not a statement. 25006: the database is read-only. */
const ofTheDatabase = /^(08|25006|40|53|55|57|58)/

/** SQLSTATEs that end a session, perhaps after its commit. */
const ofTheSession = /^(08|57P|58)/

/**
 * Returns the error unchanged if a statement or its values are the cause.
 * @param isCommitting true if a commit may have been under way
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

/** Microseconds since 1970; exact, because extract() gives a numeric. */
export const epochMicrosecondsSql = (timeSql: string) => `(extract(epoch from ${timeSql}) * 1000000)::bigint`

/** Exact below 2^53 microseconds. */
export const timestampOfMicrosecondsSql = (microsecondsSql: string) =>
  `timestamptz 'epoch' + ${microsecondsSql} * interval '1 microsecond'`

/** Replaces U+0000, because Postgres cannot store it. */
export function replaceNulCharacters(text: string | null): string | null {
  return text?.replaceAll('\u0000', '\ufffd') ?? null
}
