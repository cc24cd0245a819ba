import pg from 'pg'
import { type DatabaseAddress, fixedAddress } from './databaseAddress.ts'
import { SessionPool } from './sessionPool.ts'
import { statementSettings, textSettings } from './sessionSettings.ts'
import {
  type Blame,
  blameOfState,
  codeOf,
  isLockTimeout,
  isReadOnlyError,
  isStatementCanceled,
  type Work,
} from './sqlState.ts'

export type { Pool } from 'pg'

export interface Database {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<Row>>
}

export interface PoolOptions {
  url: string | DatabaseAddress
  name: string
  connections: number
  /** An idle connection broke; the pool replaces it. */
  onIdleError: (error: Error) => void
  settings?: Record<string, string>
  /** Whether its commits survive a crash, whatever the server is set to. */
  durable?: boolean
  /** Whether the database is the ERP's: its sessions look names up in the catalog only; see `withRolePath`. */
  isErp?: boolean
  /** Whether its sessions prepare repeated statements: only if all tables are ours. */
  prepares?: boolean
  /** For a connection, for a statement on the server, and for its answer. */
  limits?: { connectMs: number; statementMs: number; answerMs: number }
}

const usualLimits = { connectMs: 5_000, statementMs: 20_000, answerMs: 25_000 }

/** Opens a pool on which nothing waits for ever, on the server's side too, so that a stopped process holds no locks. */
export function createPool({
  url,
  name,
  connections,
  onIdleError,
  settings = {},
  durable = false,
  isErp = false,
  prepares = false,
  limits = usualLimits,
}: PoolOptions): pg.Pool {
  const address = typeof url === 'string' ? fixedAddress(url) : url
  const pool = new SessionPool(
    {
      application_name: name,
      max: connections,
      keepAlive: true,
      connectionTimeoutMillis: limits.connectMs,
      query_timeout: limits.answerMs,
      // A session that only reads is not told when its server becomes a standby.
      maxLifetimeSeconds: 300,
    },
    {
      address,
      timeouts: { statement_timeout: limits.statementMs, idle_in_transaction_session_timeout: 10_000 },
      settings: { ...statementSettings, ...settings },
      everywhere: textSettings,
      durable,
      isErp,
      prepares,
    },
  )
  pool.on('error', onIdleError)
  return pool
}

/** A transaction on a connection of its own; disposal ends it if `commit` did not. */
export interface Transaction extends AsyncDisposable {
  readonly db: Database
  /** If this fails, the COMMIT may have happened: callers write under a fence and may do it again. */
  commit(): Promise<void>
}

/** A pool, or its `withRolePath`. */
export interface Sessions extends Database {
  readonly beginning?: string
  connect(): Promise<pg.PoolClient>
}

/**
 * The same sessions with the role's own search path instead of the catalog's: for statements that run code of the
 * client's (triggers, policies, a filter) or compare values of its types.
 */
export function withRolePath(pool: pg.Pool | Sessions): Sessions
export function withRolePath(db: Database): Database
export function withRolePath(pool: Database): Database {
  return pool instanceof SessionPool ? pool.byRolePath : pool
}

/** Reads the schemas of the role's search path, also those that the role must not use. */
export async function readRoleSchemas(db: Database): Promise<string[]> {
  const { rows } = await db.query<{ path: string; user: string }>(
    `select pg_catalog.current_setting('search_path') as path, current_user::text as user`,
  )
  const { path = '', user = '' } = rows[0] ?? {}
  const rolePath = db instanceof SessionPool ? await db.readRolePath() : null
  const schemas = (rolePath ?? path).split(/, */)
  return schemas.map((name) => name.replaceAll('"', '').replace(/^\$user$/, user)).filter((name) => name !== '')
}

export interface TransactionOptions {
  /** Runs with its beginning, before it sees anything. */
  opening?: string
  /**
   * Whether a COMMIT with a warning has failed: one that no longer waits for its synchronous standby warns that the
   * standby may not have it.
   */
  isCertain?: boolean
  /** Whether the transaction may only read: that the server refuses a write then says nothing of the server. */
  isReadOnly?: boolean
}

export class CommitUncertain extends Error {
  override name = 'CommitUncertain'
  constructor(warning: string) {
    super(`a transaction is committed, and may not survive a failover: ${warning}`)
  }
}

/**
 * Begins a transaction. A connection that broke, or whose server became read-only, is not given back to the pool,
 * because a new one may lead to another server.
 */
export async function begin(
  pool: Sessions,
  { opening, isCertain = false, isReadOnly = false }: TransactionOptions = {},
): Promise<Transaction> {
  const client = await pool.connect()
  let open = true
  let broken: Error | undefined
  const onError = (error: Error) => {
    broken = error
  }
  client.on('error', onError)
  const end = async (statement: 'commit' | 'rollback') => {
    open = false
    let warning: string | undefined
    const onNotice = ({ severity, message }: { severity?: string | undefined; message?: string | undefined }) => {
      if (severity === 'WARNING') warning ??= message ?? ''
    }
    client.on('notice', onNotice)
    try {
      await client.query(statement)
    } catch (error) {
      broken ??= error as Error
      throw error
    } finally {
      client.off('notice', onNotice)
    }
    if (isCertain && warning !== undefined) throw new CommitUncertain(warning)
  }
  const db: Database = {
    async query(text, values) {
      try {
        return await client.query(text, values)
      } catch (error) {
        if (endsSession(error) && !(isReadOnly && isReadOnlyError(error))) broken ??= error as Error
        throw error
      }
    },
  }
  const transaction: Transaction = {
    db,
    commit: () => end('commit'),
    async [Symbol.asyncDispose]() {
      if (open) await end('rollback').catch(() => {}) // the connection is thrown away, which rolls back too
      client.off('error', onError)
      client.release(broken)
    },
  }
  try {
    const beginnings = [pool.beginning ?? 'begin', ...(isReadOnly ? ['set transaction read only'] : []), opening]
    await client.query(beginnings.filter((each) => each !== undefined).join('; '))
    return transaction
  } catch (error) {
    broken ??= error as Error
    await transaction[Symbol.asyncDispose]()
    throw error
  }
}

export async function inTransaction<T>(
  pool: pg.Pool,
  work: (db: Database) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  await using transaction = await begin(pool, options)
  const result = await work(transaction.db)
  await transaction.commit()
  return result
}

/** Whether the database was away or ended the session, so that the same work may succeed later. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof DatabaseUnusable) return isTransient(error.cause)
  if (error instanceof CommitUncertain) return true
  const code = codeOf(error)
  if (typeof code !== 'string') return /timeout|terminated|ended|closed|not queryable/i.test(error.message)
  // 08 connection, 40 deadlock and serialization, 53 resources, 57P shutdown, 55P03 lock, 25P0x idle session ended,
  // 25006 read-only
  return /^(08|40|53|57|55P03|25P|25006|E[A-Z]+$)/.test(code)
}

export function isReadOnlyServer(error: unknown): boolean {
  if (error instanceof DatabaseUnusable) return isReadOnlyServer(error.cause)
  return isReadOnlyError(error)
}

/** Whether the session lives on. Whatever the code, a row's trigger may have raised it. */
export function isStatementError(error: unknown): boolean {
  return error instanceof Error && (error as { severity?: unknown }).severity === 'ERROR'
}

/**
 * Whether the session is of no further use: broken, read-only, or what it prepared is gone (26000) or has another
 * result since a migration (0A000).
 */
function endsSession(error: unknown): boolean {
  const code = codeOf(error)
  return typeof code !== 'string' || /^(08|57P|25P|25006|26000|0A000|E[A-Z]+$)/.test(code)
}

/** 55P03 lock_timeout, 57014 statement_timeout. */
export function isLockOrTimeout(error: unknown): boolean {
  return isLockTimeout(error) || isStatementCanceled(error)
}

/**
 * Tells whether other pieces of work would fare better than the one that failed. An error that ends the session is
 * about everyone, and so is one without a SQLSTATE, unless it is a mistake of ours.
 */
export function blameFor(error: unknown, work: Work): Blame {
  const { severity } = (error ?? {}) as { severity?: unknown }
  if (severity === 'FATAL' || severity === 'PANIC') return 'everyone'
  const state = String(codeOf(error))
  if (isSqlState(state)) return blameOfState(state, work)
  return isTransient(error) ? 'everyone' : 'piece'
}

/** The system's words look alike: EPIPE. */
const isSqlState = (code: string) => /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]+$/.test(code)

/** The message names the variable and the server, never the password. */
export class DatabaseUnusable extends Error {
  override name = 'DatabaseUnusable'
  constructor(variable: string, url: string, why: string, cause?: unknown) {
    super(`the database of ${variable} at ${serverOf(url)} cannot be used: ${why}`, { cause })
  }
}

/** Names the database if `work` fails because of it. */
export async function withDatabase<T>(variable: string, url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof DatabaseUnusable || !(error instanceof Error) || !('code' in error || isTransient(error)))
      throw error
    throw new DatabaseUnusable(variable, url, error.message || String(codeOf(error)), error)
  }
}

function serverOf(url: string): string {
  if (!URL.canParse(url)) return '(not an address)'
  const { host, pathname } = new URL(url)
  return `${host || 'the local socket'}${pathname}`
}

export const quoteIdentifier = pg.escapeIdentifier

/** A moment, or a span of time, as a column in milliseconds. */
export const epochMsSql = (time: string): string => `extract(epoch from ${time})::float8 * 1000`

export const isoTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())
