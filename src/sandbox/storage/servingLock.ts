import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'

/** An advisory lock in its own session, so that only one sandbox serves a database. */
interface ServingLock {
  readonly session: pg.Client
  /** Resolves with the reason if the session was lost and another sandbox got the lock before this one got it again. */
  readonly lost: Promise<string>
  release(): Promise<void>
}

const retryMs = 250

/** With these settings, Postgres notices within half a minute that a session's host vanished, and frees the lock. */
const keepAlive = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3'

/** @throws Error if another sandbox has the lock after `waitMs`, pg's errors if the database cannot be reached */
export async function takeServingLock(databaseUrl: string, waitMs: number): Promise<ServingLock> {
  const first = await connect(databaseUrl)
  try {
    await first.query("select set_config('lock_timeout', $1, false)", [`${Math.max(1, waitMs)}ms`])
    await first.query('select pg_advisory_lock(7164, 1)')
    await first.query("select set_config('lock_timeout', '0', false)")
  } catch (error) {
    const isTaken = error instanceof pg.DatabaseError && error.code === '55P03'
    const thrown = isTaken ? new Error(takenMessage(await readHolder(first))) : error
    await first.end()
    throw thrown
  }
  const released = new AbortController()
  const lost = Promise.withResolvers<string>()
  let session = first
  session.once('end', () => void retake())
  return {
    session: first,
    lost: lost.promise,
    async release() {
      released.abort()
      await session.end()
    },
  }

  async function retake(): Promise<void> {
    while (!released.signal.aborted) {
      const next = await connect(databaseUrl).catch(() => undefined)
      const isHeld = await next?.query('select pg_try_advisory_lock(7164, 1) as held').then(
        ({ rows }) => rows[0].held === true,
        () => undefined,
      )
      if (next && isHeld && !released.signal.aborted) {
        session = next
        return void session.once('end', () => void retake())
      }
      const holder = isHeld === false && next ? await readHolder(next).catch(() => null) : null
      await next?.end().catch(() => {})
      if (holder !== null && holder.application !== nameOfProcess())
        return lost.resolve(`the sandbox's session on the database was lost. ${takenMessage(holder)}`)
      await delay(retryMs, undefined, { signal: released.signal }).catch(() => {})
    }
  }
}

function nameOfProcess(): string {
  return `outboxd sandbox, process ${process.pid} on ${hostname()}`.slice(0, 63)
}

async function connect(databaseUrl: string): Promise<pg.Client> {
  const session = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    application_name: nameOfProcess(),
    options: keepAlive,
  })
  session.on('error', () => {}) // the event 'end' follows an error
  await session.connect()
  return session
}

interface Holder {
  application: string | null
  pid: number
}

async function readHolder(session: pg.Client): Promise<Holder | null> {
  const { rows } = await session.query<Holder>(`
    select application_name as application, pid
    from pg_locks join pg_stat_activity using (pid)
    where locktype = 'advisory' and granted and classid = 7164 and objid = 1 and objsubid = 2
      and pg_locks.database = (select oid from pg_database where datname = current_database())
  `)
  return rows[0] ?? null
}

function takenMessage(holder: Holder | null): string {
  const who = holder === null ? '' : `: "${holder.application}", Postgres backend ${holder.pid}`
  return `Another sandbox serves this database${who}. Stop that sandbox, or give this one another database (SANDBOX_DATABASE_URL).`
}
