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
 * A session can be lost without its process ending. So the lock says who may begin, and a number, the term, says who may write:
 * each sandbox raises it when it begins, and every write of a request stands under the condition that the term is still its own.
 * One that has lost its session goes on, and takes the lock again:
 *
 *     held    --the session is lost-------------------------> lost
 *     lost    --the lock is taken, the term is still ours---> held
 *     lost    --the term is another's-----------------------> displaced, for good
 */
export class ServingLock {
  readonly #databaseUrl: string
  readonly #released = new AbortController()
  readonly #displaced = Promise.withResolvers<string>()
  #session: pg.Client
  #term = 0

  private constructor(databaseUrl: string, session: pg.Client) {
    this.#databaseUrl = databaseUrl
    this.#session = session
    this.#watch(session)
  }

  /**
   * Takes the lock, or waits for it: Postgres gives back that of a process that was killed when it notices.
   *
   * @throws DatabaseTaken when another holds it after `waitMs`, pg's errors when the database cannot be reached
   */
  static async take(databaseUrl: string, waitMs: number): Promise<ServingLock> {
    const session = await connect(databaseUrl)
    try {
      await session.query("select set_config('lock_timeout', $1, false)", [`${Math.max(1, waitMs)}ms`])
      await session.query(`select ${lock('pg_advisory_lock')}`)
      await session.query("select set_config('lock_timeout', '0', false)")
      return new ServingLock(databaseUrl, session)
    } catch (error) {
      const taken = isLockTimeout(error) ? new DatabaseTaken(await describeHolder(session)) : error
      await session.end()
      throw taken
    }
  }

  /** The session that holds the lock, to make the schema with. */
  get session(): pg.Client {
    return this.#session
  }

  /** Every write stands under the condition that `sandbox.state` still has this number under `serving`. */
  get term(): number {
    return this.#term
  }

  /** Resolves with what happened when another sandbox has begun to serve the database; never, as long as this one may. */
  get displaced(): Promise<string> {
    return this.#displaced.promise
  }

  /** Begins a term. A write of the sandbox before, which may still be under way, is waited for; none can follow. */
  async begin(): Promise<void> {
    const { rows } = await this.#session.query<{ term: number }>(`
      insert into sandbox.state (name, value) values ('serving', '1')
      on conflict (name) do update set value = to_jsonb(state.value::integer + 1)
      returning value::integer as term
    `)
    this.#term = rows[0]?.term ?? 0
  }

  async release(): Promise<void> {
    this.#released.abort()
    await this.#session.end()
  }

  #watch(session: pg.Client): void {
    session.once('end', () => void this.#regain())
  }

  async #regain(): Promise<void> {
    while (!this.#released.signal.aborted) {
      const session = await connect(this.#databaseUrl).catch(() => undefined)
      const outcome = session && (await retake(session, this.#term).catch(() => 'lost' as const))
      if (session && outcome === 'held' && !this.#released.signal.aborted) {
        this.#session = session
        return this.#watch(session)
      }
      if (session && outcome === 'displaced') this.#displaced.resolve(await describeHolder(session).catch(() => ''))
      await session?.end().catch(() => {})
      if (outcome === 'displaced') return
      await delay(retryMs, undefined, { signal: this.#released.signal }).catch(() => {})
    }
  }
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

async function retake(session: pg.Client, ownTerm: number): Promise<'held' | 'lost' | 'displaced'> {
  const { rows } = await session.query<{ held: boolean; term: number }>(`
    select ${lock('pg_try_advisory_lock')} as held, value::integer as term from sandbox.state where name = 'serving'
  `)
  const [row] = rows
  if (row?.term !== ownTerm) return 'displaced'
  return row.held ? 'held' : 'lost'
}

async function describeHolder(session: pg.Client): Promise<string> {
  const { rows } = await session.query<{ pid: number; name: string; address: string; since: string | null }>(`
    select pid, coalesce(application_name, 'another program') as name, coalesce(host(client_addr), 'a local socket') as address,
      to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
    from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and granted and pid <> pg_backend_pid()
      and pg_locks.database = (select oid from pg_database where datname = current_database())
      and classid = 7164 and objid = 1 and objsubid = 2
  `)
  const [holder] = rows
  const who = holder
    ? `: "${holder.name}" from ${holder.address} since ${holder.since}, Postgres backend ${holder.pid}`
    : ''
  return `Another sandbox serves this database${who}. One serves a database at a time: end it, or give this one a database of its own (SANDBOX_DATABASE_URL).`
}

/** Two keys; docs/architecture.md has those of all our locks. */
function lock(take: 'pg_advisory_lock' | 'pg_try_advisory_lock'): string {
  return `${take}(7164, 1)`
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03'
}
