import pg from 'pg'

/** The database did not do what it was asked: it is away, busy for longer than we wait, or another sandbox's by now. */
export class DatabaseAway extends Error {
  override name = 'DatabaseAway'
  /** Whether what was to be written may have been committed all the same. */
  readonly mayBeStored: boolean

  constructor(what: string, mayBeStored: boolean, cause?: unknown) {
    super(what, { cause })
    this.mayBeStored = mayBeStored
  }
}

/**
 * Lets all statements that a pool runs by itself fail with DatabaseAway, unless they are at fault: then with pg's DatabaseError.
 * That is for statements after which whoever asked is told that he may ask again, and none is harmed by what was done.
 */
export function tellAway(pool: pg.Pool): void {
  const query = pool.query.bind(pool) as (...given: unknown[]) => Promise<unknown>
  const told = (...given: unknown[]) =>
    query(...given).catch((error: unknown) => {
      throw asAway(error, false)
    })
  pool.query = told as typeof pool.query
}

/** Takes a connection. @throws DatabaseAway, surely before anything was written */
export async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw new DatabaseAway(wordsOf(error), false, error)
  }
}

/** SQLSTATEs that say how the database is; all others say what is wrong with a statement or a value. 25006: read-only. */
const ofTheDatabase = /^(08|25006|40|53|55|57|58)/

/** Of these, the ones with which a session ends: it may have committed before, and not come to say so. */
const ofTheSession = /^(08|57P|58)/

/**
 * An error as DatabaseAway, unless a statement or its values are at fault: then as it is, and surely nothing was committed.
 *
 * @param isCommitting whether a commit may have been under way: a statement alone is its own
 */
export function asAway(error: unknown, isCommitting: boolean): unknown {
  if (error instanceof DatabaseAway) return error
  if (!(error instanceof pg.DatabaseError)) return new DatabaseAway(wordsOf(error), isCommitting, error)
  const code = error.code ?? ''
  return ofTheDatabase.test(code)
    ? new DatabaseAway(error.message, isCommitting && ofTheSession.test(code), error)
    : error
}

function wordsOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(wordsOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}

/** Says on stderr that the database is away and when it is back, in one line each, however many requests meet it. */
export class Outage {
  readonly #closing: AbortSignal
  #isTold = false

  /** @param closing aborts when the sandbox lets go of the database itself */
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
