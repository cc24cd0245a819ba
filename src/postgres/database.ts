import pg from 'pg'
import { type PoolOptions, SessionPool } from './sessionPool.ts'
import {
  classifySqlState,
  type DatabaseErrorBlame,
  errorCodeOf,
  isLockTimeout,
  isReadOnlyError,
  isStatementCanceled,
  type WorkKind,
} from './sqlState.ts'

export type { Pool } from 'pg'

export interface Database {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<Row>>
}

/** For a statement that always returns one row, such as a count. @throws LedgerDamaged if it returned none or several */
export async function queryOne<Row extends pg.QueryResultRow>(
  db: Database,
  text: string,
  values?: unknown[],
): Promise<Row> {
  const { rows } = await db.query<Row>(text, values)
  const [row] = rows
  if (row === undefined || rows.length > 1)
    throw new LedgerDamaged(
      `a statement that returns one row has returned ${rows.length}. If a restore is loading data, wait for its end: ${text.slice(0, 200)}`,
    )
  return row
}

/** Reads the schema of the ledger that the session belongs to. */
export async function readLedgerSchema(db: Database): Promise<string> {
  return (await queryOne<{ schema: string }>(db, `select 'outboxd'::name as schema`)).schema
}

/** Opens a pool whose statements have time limits, on the server's side, too. */
export const createPool = (options: PoolOptions): pg.Pool => new SessionPool(options)

/** Disposal rolls back unless `commit` was called. */
export interface Transaction extends AsyncDisposable {
  readonly db: Database
  /** If this fails, the COMMIT may have happened, so callers write under a fence. */
  commit(): Promise<void>
}

export interface DatabasePool extends Database {
  readonly beginSql?: string
  connect(): Promise<pg.PoolClient>
}

/** Returns sessions with the role's own search path, for statements that run the client's code or compare its types. */
export function withSearchPathOfRole(pool: pg.Pool | DatabasePool): DatabasePool
export function withSearchPathOfRole(db: Database): Database
export function withSearchPathOfRole(pool: Database): Database {
  return pool instanceof SessionPool ? pool.roleSearchPathSessions : pool
}

/** Returns also schemas that the role may not use. */
export async function readSchemasInSearchPath(db: Database): Promise<string[]> {
  const { path, user } = await queryOne<{ path: string; user: string }>(
    db,
    `select pg_catalog.current_setting('search_path') as path, current_user::text as user`,
  )
  const rolePath = db instanceof SessionPool ? await db.readRoleSearchPath() : null
  const schemas = (rolePath ?? path).split(/, */)
  return schemas.map((name) => name.replaceAll('"', '').replace(/^\$user$/, user)).filter((name) => name !== '')
}

export interface TransactionOptions {
  /** A statement that runs with BEGIN, before the snapshot is taken. */
  openingSql?: string
  /** If true, a COMMIT with a warning throws `CommitUncertain`, because a synchronous standby may not have it. */
  mustSurviveFailover?: boolean
  /** If true, the transaction cannot write. A refused write then does not mean that the server is read-only. */
  isReadOnly?: boolean
}

export class CommitUncertain extends Error {
  override name = 'CommitUncertain'
  constructor(warning: string) {
    super(`a transaction was committed, but it may not survive a failover: ${warning}`)
  }
}

/**
 * Begins a transaction. Its connection leaves the pool if the connection broke or its server became read-only, because
 * a new one may lead to another server.
 */
export async function beginTransaction(
  pool: DatabasePool,
  { openingSql, mustSurviveFailover = false, isReadOnly = false }: TransactionOptions = {},
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
    if (mustSurviveFailover && warning !== undefined) throw new CommitUncertain(warning)
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
      // A broken connection is closed, which rolls back, too. A ROLLBACK would wait behind a statement without an answer.
      if (open && broken === undefined) await end('rollback').catch(() => {})
      client.off('error', onError)
      client.release(broken)
    },
  }
  try {
    const statements = [pool.beginSql ?? 'begin', ...(isReadOnly ? ['set transaction read only'] : []), openingSql]
    await client.query(statements.filter((each) => each !== undefined).join('; '))
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
  await using transaction = await beginTransaction(pool, options)
  const result = await work(transaction.db)
  await transaction.commit()
  return result
}

/** True if the database was away or ended the session, so that the same work may succeed later. */
export function isTransientError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof DatabaseUnusable) return isTransientError(error.cause)
  if (error instanceof CommitUncertain) return true
  const code = errorCodeOf(error)
  if (typeof code !== 'string') return sessionGoneMessage.test(error.message)
  // 08 connection, 40 deadlock and serialization, 53 resources, 57 shutdown, 55P03 lock, 25P0x idle session ended,
  // 25006 read-only
  return /^(08|40|53|57|55P03|25P|25006|E[A-Z]+$)/.test(code)
}

/** Those of pg and pg-pool, as a whole: a message of ours may name a column `closed`. */
const sessionGoneMessage =
  /^(Connection terminated( unexpectedly| due to connection timeout)?|Client (was closed|has encountered a connection error) and is not queryable|Query read timeout|timeout (expired|exceeded when trying to connect))$/

export function isReadOnlyServerError(error: unknown): boolean {
  if (error instanceof DatabaseUnusable) return isReadOnlyServerError(error.cause)
  return isReadOnlyError(error)
}

/** True if a statement may take effect although its answer is lost. */
export function wasAnswerLost(error: unknown): boolean {
  if (error instanceof DatabaseUnusable) return wasAnswerLost(error.cause)
  if (!(error instanceof Error)) return false
  const code = errorCodeOf(error)
  if (code === undefined) return /^(Query read timeout|Connection terminated( unexpectedly)?)$/.test(error.message)
  return (
    /^(08(003|006|007)|57P0[12])$/.test(String(code)) ||
    ['read', 'write'].includes((error as NodeJS.ErrnoException).syscall ?? '')
  )
}

/** True if the session can still be used. A row's trigger may raise any code, so only the severity counts. */
export function didSessionSurviveError(error: unknown): boolean {
  return error instanceof Error && (error as { severity?: unknown }).severity === 'ERROR'
}

/**
 * True if the session cannot be used again. 26000: a prepared statement is gone. 0A000: a migration changed its result.
 */
function endsSession(error: unknown): boolean {
  const code = errorCodeOf(error)
  return typeof code !== 'string' || /^(08|57P|25P|25006|26000|0A000|E[A-Z]+$)/.test(code)
}

export function isLockTimeoutOrCanceled(error: unknown): boolean {
  return isLockTimeout(error) || isStatementCanceled(error)
}

/** A statement had no effect, whatever its values were: part of the ledger is missing. */
export class LedgerDamaged extends Error {
  override name = 'LedgerDamaged'
}

export function classifyDatabaseError(error: unknown, work: WorkKind): DatabaseErrorBlame {
  const { severity } = (error ?? {}) as { severity?: unknown }
  if (severity === 'FATAL' || severity === 'PANIC' || error instanceof LedgerDamaged) return 'everyone'
  const state = String(errorCodeOf(error))
  if (isSqlState(state)) return classifySqlState(state, work)
  return isTransientError(error) ? 'everyone' : 'piece'
}

const isSqlState = (code: string) => /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]+$/.test(code)

/** Names the server, never the password. */
export class DatabaseUnusable extends Error {
  override name = 'DatabaseUnusable'
  constructor(url: string, why: string, cause?: unknown) {
    super(`the database of DATABASE_URL at ${serverOf(url)} cannot be used: ${why}`, { cause })
  }
}

export async function withConnectionErrorsExplained<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof DatabaseUnusable || !(error instanceof Error) || !('code' in error || isTransientError(error)))
      throw error
    const why = isLockTimeout(error) ? tableLockedClause : error.message || String(errorCodeOf(error))
    throw new DatabaseUnusable(url, why, error)
  }
}

/** Finds the session that had a lock, after our statement has given up. */
export const longTransactionsSql = `select pid, application_name, query from pg_stat_activity where xact_start < now() - interval '10 s'`

const tableLockedClause = `another session has locked a table. \`outboxd status\` names the session, or find it (\`${longTransactionsSql}\`)`

function serverOf(url: string): string {
  if (!URL.canParse(url)) return '(not an address)'
  const { host, pathname } = new URL(url)
  return `${host || 'the local socket'}${pathname}`
}

export const quoteLiteral = (text: string): string => `'${text.replaceAll("'", "''")}'`

export const quoteIdentifier = pg.escapeIdentifier

/** Turns a timestamp or an interval into milliseconds. */
export const epochMsSql = (timeSql: string): string => `extract(epoch from ${timeSql})::float8 * 1000`
