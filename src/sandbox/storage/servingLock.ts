import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'

export class DatabaseTaken extends Error {
  override name = 'DatabaseTaken'
}

const retryMs = 250

/** Postgres notices a vanished host within half a minute. */
const keepAlive = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3'

/** An advisory lock in its own session: one sandbox serves a database. */
interface ServingLock {
  readonly session: pg.Client
  /** Resolves if the session was lost and another sandbox has the lock. Until then the lock is tried again. */
  readonly lost: Promise<string>
  release(): Promise<void>
}

/**
 * @throws DatabaseTaken if another sandbox holds the lock after `waitMs`, pg's errors if the database cannot be reached
 */
export async function takeServingLock(databaseUrl: string, waitMs: number): Promise<ServingLock> {
  const first = await connect(databaseUrl)
  try {
    await first.query("select set_config('lock_timeout', $1, false)", [`${Math.max(1, waitMs)}ms`])
    await first.query('select pg_advisory_lock(7164, 1)')
    await first.query("select set_config('lock_timeout', '0', false)")
  } catch (error) {
    const isTaken = error instanceof pg.DatabaseError && error.code === '55P03'
    const thrown = isTaken ? new DatabaseTaken(describeHolder(await findHolder(first))) : error
    await first.end()
    throw thrown
  }
  const released = new AbortController()
  const lost = Promise.withResolvers<string>()
  let session = first
  watch()
  return {
    session: first,
    lost: lost.promise,
    async release() {
      released.abort()
      await session.end()
    },
  }

  function watch(): void {
    session.once('end', () => void retake())
  }

  async function retake(): Promise<void> {
    const lostPid = pidOf(session)
    while (!released.signal.aborted) {
      const next = await connect(databaseUrl).catch(() => undefined)
      const outcome = next && (await tryLock(next, lostPid).catch(() => 'unknown' as const))
      if (next && outcome === 'held' && !released.signal.aborted) {
        session = next
        return watch()
      }
      await next?.end().catch(() => {})
      if (typeof outcome === 'object') return lost.resolve(`its session was lost. ${describeHolder(outcome)}`)
      await delay(retryMs, undefined, { signal: released.signal }).catch(() => {})
    }
  }
}

/**
 * @param lostPid the backend of the lost session, which may still hold the lock @returns another holder; `unknown` if
 * the lock is free or the lost session holds it
 */
async function tryLock(session: pg.Client, lostPid: number): Promise<Holder | 'held' | 'unknown'> {
  const { rows } = await session.query<{ held: boolean }>('select pg_try_advisory_lock(7164, 1) as held')
  if (rows[0]?.held) return 'held'
  const holder = await findHolder(session)
  return holder === undefined || holder.pid === lostPid ? 'unknown' : holder
}

function pidOf(session: pg.Client): number {
  return (session as unknown as { processID: number }).processID
}

async function connect(databaseUrl: string): Promise<pg.Client> {
  const session = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    application_name: `outboxd sandbox, process ${process.pid} on ${hostname()}`.slice(0, 63),
    options: keepAlive,
  })
  session.on('error', () => {}) // 'end' follows
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

function describeHolder(holder: Holder | undefined): string {
  const who = holder
    ? `: "${holder.name}" from ${holder.address} since ${holder.since}, Postgres backend ${holder.pid}`
    : ''
  return `Another sandbox serves this database${who}. Stop it, or give this one another database (SANDBOX_DATABASE_URL).`
}
