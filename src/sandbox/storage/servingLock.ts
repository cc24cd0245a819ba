import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'

/** Another sandbox serves the database; the message says which. */
export class DatabaseTaken extends Error {
  override name = 'DatabaseTaken'
}

const retryMs = 250

/** The server shall notice within half a minute that a host has gone without a word; a process that is killed it notices at once. */
const keepAlive = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3'

/**
 * The right to serve a database, which one sandbox has at a time: an advisory lock, held by a session of its own.
 *
 * A sandbox that loses this session serves on while it takes the lock again. If another sandbox has the lock by then, `lost`
 * resolves, and the sandbox must end.
 */
export class ServingLock {
  readonly #databaseUrl: string
  readonly #released = new AbortController()
  readonly #lost = Promise.withResolvers<string>()
  #held: Held

  private constructor(databaseUrl: string, held: Held) {
    this.#databaseUrl = databaseUrl
    this.#held = held
    this.#watch()
  }

  /**
   * Takes the lock, or waits for it: Postgres frees the lock of a killed process when it notices the end of its session.
   *
   * @throws DatabaseTaken when another holds it after `waitMs`, pg's errors when the database cannot be reached
   */
  static async take(databaseUrl: string, waitMs: number): Promise<ServingLock> {
    const session = await connect(databaseUrl)
    try {
      await session.query("select set_config('lock_timeout', $1, false)", [`${Math.max(1, waitMs)}ms`])
      const { rows } = await session.query<{ pid: number }>(
        'select pg_backend_pid() as pid from (select pg_advisory_lock(7164, 1)) taken',
      )
      await session.query("select set_config('lock_timeout', '0', false)")
      return new ServingLock(databaseUrl, { session, pid: rows[0]?.pid ?? 0 })
    } catch (error) {
      const taken = isLockTimeout(error) ? new DatabaseTaken(explainHolder(await findHolder(session))) : error
      await session.end()
      throw taken
    }
  }

  /** The session that holds the lock, to make the schema with. */
  get session(): pg.Client {
    return this.#held.session
  }

  /** Resolves with the reason when another sandbox has the lock. */
  get lost(): Promise<string> {
    return this.#lost.promise
  }

  async release(): Promise<void> {
    this.#released.abort()
    await this.session.end()
  }

  #watch(): void {
    this.session.once('end', () => void this.#regain())
  }

  async #regain(): Promise<void> {
    while (!this.#released.signal.aborted) {
      const session = await connect(this.#databaseUrl).catch(() => undefined)
      const outcome = session && (await retake(session, this.#held.pid).catch(() => null))
      if (session && outcome?.kind === 'held' && !this.#released.signal.aborted) {
        this.#held = { session, pid: outcome.pid }
        return this.#watch()
      }
      await session?.end().catch(() => {})
      if (outcome?.kind === 'taken') return this.#lost.resolve(`its session was lost. ${outcome.why}`)
      await delay(retryMs, undefined, { signal: this.#released.signal }).catch(() => {})
    }
  }
}

/** @property pid of the session's backend */
interface Held {
  session: pg.Client
  pid: number
}

type Retaken = { kind: 'held'; pid: number } | { kind: 'taken'; why: string }

/** @param lostPid the backend of the lost session, which may not know of its end yet @returns null if it holds the lock still */
async function retake(session: pg.Client, lostPid: number): Promise<Retaken | null> {
  const { rows } = await session.query<{ held: boolean; pid: number }>(
    'select pg_try_advisory_lock(7164, 1) as held, pg_backend_pid() as pid',
  )
  const [row] = rows
  if (row?.held) return { kind: 'held', pid: row.pid }
  const holder = await findHolder(session)
  return holder === undefined || holder.pid === lostPid ? null : { kind: 'taken', why: explainHolder(holder) }
}

async function connect(databaseUrl: string): Promise<pg.Client> {
  const session = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    application_name: `outboxd sandbox, process ${process.pid} on ${hostname()}`.slice(0, 63),
    options: keepAlive,
  })
  session.on('error', () => {}) // its end tells, too
  await session.connect()
  return session
}

interface Holder {
  pid: number
  name: string
  address: string
  since: string | null
}

async function findHolder(session: pg.Client): Promise<Holder | undefined> {
  const { rows } = await session.query<Holder>(`
    select pid, coalesce(application_name, 'another program') as name, coalesce(host(client_addr), 'a local socket') as address,
      to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
    from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and granted and pid <> pg_backend_pid()
      and pg_locks.database = (select oid from pg_database where datname = current_database())
      and classid = 7164 and objid = 1 and objsubid = 2
  `)
  return rows[0]
}

function explainHolder(holder: Holder | undefined): string {
  const who = holder
    ? `: "${holder.name}" from ${holder.address} since ${holder.since}, Postgres backend ${holder.pid}`
    : ''
  return `Another sandbox serves this database${who}. One serves a database at a time: end it, or give this one a database of its own (SANDBOX_DATABASE_URL).`
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03'
}
