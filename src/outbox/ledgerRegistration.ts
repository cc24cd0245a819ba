import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { ForeignError } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import { type DatabaseAddress, isSignInRefused } from '../postgres/databaseAddress.ts'
import { daemonSessionNames } from '../postgres/sessionSettings.ts'

export interface OtherDaemon {
  pid: number
  user: string | null
  /** Null for a local socket. */
  address: string | null
  since: string | null
}

export class ForeignLedger extends ForeignError {
  override name = 'ForeignLedger'
  constructor(table: string, daemons: readonly OtherDaemon[]) {
    super(
      'foreign_ledger',
      table,
      `${otherLedgerMessage(table, daemons)}. This daemon captures nothing and writes nothing back, so that no row is sent twice`,
    )
  }
}

export function otherLedgerMessage(table: string, daemons: readonly OtherDaemon[]): string {
  const sessions = daemons.map(({ pid, user, address, since }) =>
    [`pid ${pid}`, user, address && `from ${address}`, since && `since ${since}`].filter(Boolean).join(' '),
  )
  return `a daemon of another ledger serves the outbox ${table} (${sessions.join('; ')}). STATE_DATABASE_URL is probably missing or wrong for one of the two: compare \`outboxd config --effective\`, and stop the daemon with the wrong ledger. With \`state: none\`, then run \`outboxd adopt --same --start id:N\` for the right ledger, where N is the first row that the stopped daemon has not sent`
}

/**
 * Three advisory locks in the outbox's database. Each daemon's session holds two of them while it lives:
 *
 *     own       shared     table and ledger: daemons of one ledger share it
 *     served    shared     table: a daemon that holds it without our `own` belongs to a different ledger
 *     starting  exclusive  table: if two ledgers start at once, the second waits and then sees the first
 *
 * Any role can take these locks, so a session counts only if its role may read the outbox or is a member of our role.
 * Every wait for a lock has a bound.
 */
const locks = { served: 1_869_968_483, own: 1_869_968_484, starting: 1_869_968_485 } as const

function ownNumber(table: number, ledger: string): number {
  return createHash('sha256').update(`${table} ${ledger}`).digest().readUInt32BE() >>> 1
}

async function readOthers(db: Database, oid: number, ledger: string): Promise<OtherDaemon[]> {
  const { rows } = await db.query<OtherDaemon>(
    `with held as materialized (
       select pid, classid, objid from pg_locks where locktype = 'advisory' and granted and objsubid = 2 and mode = 'ShareLock'
         and database = (select oid from pg_database where datname = current_database())
     )
     select h.pid, a.usename as user, host(a.client_addr) as address,
       to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
     from held h join pg_stat_activity a using (pid)
     where h.classid = $1::bigint::oid and h.objid = $2::bigint::oid
       and (has_any_column_privilege(a.usesysid, h.objid, 'select') or pg_has_role(a.usesysid, current_user, 'member')) and not exists (
       select from held o where o.pid = h.pid and o.classid = $3::bigint::oid and o.objid = $4::bigint::oid
     ) order by h.pid`,
    [locks.served, oid, locks.own, ownNumber(oid, ledger)],
  )
  return rows
}

async function describeBlockers(db: Database, key: readonly [number, number]): Promise<string> {
  const { rows } = await db.query<{ pid: number; user: string | null }>(
    `select l.pid, a.usename as user from pg_locks l left join pg_stat_activity a using (pid)
     where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.objsubid = 2 and l.pid is distinct from pg_backend_pid()
       and l.database = (select oid from pg_database where datname = current_database())
       and l.classid = $1::bigint::oid and l.objid = $2::bigint::oid order by l.pid`,
    [...key],
  )
  const who = rows.map(({ pid, user }) => (pid === null ? 'a prepared transaction' : `pid ${pid} ${user ?? ''}`.trim()))
  const ends = rows.flatMap(({ pid }) => (pid === null ? [] : [`select pg_terminate_backend(${pid});`]))
  const advice = ends.length === 0 ? '' : `. End that session: \`${ends.join(' ')}\``
  const held = who.length === 0 ? 'was held by a session that has ended' : `is held by ${who.join('; ')}`
  return `the advisory lock (${key.join(', ')}) of the outbox, which only daemons use, ${held}. The daemon goes on, but may not notice a daemon of another ledger${advice}`
}

/** @param table quoted */
export async function findOtherDaemons(db: Database, table: string, ledger: string): Promise<OtherDaemon[]> {
  const oid = await readOid(db, table)
  return oid === null ? [] : readOthers(db, oid, ledger)
}

async function readOid(db: Database, table: string): Promise<number | null> {
  const { rows } = await db.query<{ oid: number | null }>('select to_regclass($1)::oid::bigint::float8 as oid', [table])
  return rows[0]?.oid ?? null
}

const reconnectMs = 250
/** After a restart of the server, a new daemon waits this long, so that former daemons reconnect first. */
const settledMs = 5_000
const lookEveryMs = 5_000
const answerMs = 5_000
/** Long enough for a stopped daemon's session to end, and for a second daemon to register. */
const tries = { most: 8, everyMs: 250 }

/**
 * Ends a dead peer's session after 25 s, because it would keep a different ledger out. The server's timeouts must not
 * end our session.
 */
const settings = `select set_config(name, case name when 'tcp_keepalives_idle' then '10' when 'tcp_keepalives_interval' then '5'
    when 'tcp_keepalives_count' then '3' else '0' end, $1)
  from pg_settings where name in ('tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count',
    'idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`

export interface RegistrationOptions {
  address: DatabaseAddress
  table: string
  /** Reads the table's name, quoted, with its schema. */
  readTable(): Promise<string>
  readLedgerName(): Promise<string>
  onError(error: Error): void
}

export class LedgerRegistration {
  readonly #options: RegistrationOptions
  #held: pg.Client | null = null
  #name = ''
  /** A table that was dropped and created has a new oid. */
  #heldOid: number | null = null
  #hasStood = false
  /** Null if the registration holds its locks. */
  #blocked: string | null = null
  #underWay: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: RegistrationOptions) {
    this.#options = options
  }

  /**
   * Opens the registration again if its session broke.
   *
   * @throws ForeignLedger if a daemon of a different ledger serves the table, Error if the database cannot answer
   */
  async hold(): Promise<void> {
    if (this.#held === null) await this.#renew()
    this.#timer ??= setTimeout(() => void this.#look(), lookEveryMs).unref()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    if (this.#held !== null) hangUp(this.#held)
    this.#held = null
  }

  #renew(): Promise<void> {
    this.#underWay ??= this.#register().finally(() => {
      this.#underWay = null
    })
    return this.#underWay
  }

  async #register(): Promise<void> {
    const ledger = await this.#options.readLedgerName()
    for (let turn = 1; ; turn++) {
      const others = await this.#tryToRegister(ledger)
      if (others.length === 0) return
      if (turn >= tries.most || this.#isClosed) throw new ForeignLedger(this.#options.table, others)
      await wait(tries.everyMs)
    }
  }

  async #tryToRegister(ledger: string): Promise<OtherDaemon[]> {
    const { address, table, readTable } = this.#options
    const client = this.#createClient()
    try {
      await client.connect()
      if (!this.#hasStood) await wait(await readUnsettledMs(client))
      await client.query('begin; set local search_path = pg_catalog, pg_temp')
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
      // Behind a pooler a session is ours for one transaction only, so the transaction stays open, without a snapshot.
      const isPooled = rows[0]?.pid !== (client as { processID?: number }).processID
      await client.query(settings, [isPooled])
      if (!isPooled) await client.query('set search_path = pg_catalog, pg_temp')
      this.#name = await readTable()
      const oid = await readOid(client, this.#name)
      if (oid === null) throw new Error(`there is no table ${table} in which to register the ledger`)
      const others = await this.#takeLocks(client, oid, ledger)
      if (others.length > 0 || this.#isClosed) {
        hangUp(client)
        return others
      }
      if (!isPooled) await client.query('commit')
      this.#held = client
      this.#heldOid = oid
      this.#hasStood = true
      return []
    } catch (error) {
      hangUp(client)
      if (isSignInRefused(error)) address.renew()
      throw error
    }
  }

  #createClient(): pg.Client {
    const client = new pg.Client({
      connectionString: this.#options.address.now(),
      application_name: daemonSessionNames.registration,
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
      query_timeout: answerMs,
    })
    const broke = (error: Error) => {
      if (client === this.#held) this.#lose(error)
    }
    client.on('error', broke)
    client.on('end', () => broke(new Error('the session that holds the registration was ended')))
    return client
  }

  async #takeLocks(client: pg.Client, oid: number, ledger: string): Promise<OtherDaemon[]> {
    let why: string | null = null
    const starting = [locks.starting, oid] as const
    let isFirst = await tryLock(client, 'pg_try_advisory_lock', starting)
    for (let turn = 1; !isFirst && turn < tries.most && this.#blocked === null; turn++) {
      await wait(tries.everyMs)
      isFirst = await tryLock(client, 'pg_try_advisory_lock', starting)
    }
    if (!isFirst) why = await describeBlockers(client, starting)
    let others = await readOthers(client, oid, ledger)
    if (others.length === 0) {
      for (const key of [
        [locks.own, ownNumber(oid, ledger)],
        [locks.served, oid],
      ] as const) {
        if (await tryLock(client, 'pg_try_advisory_lock_shared', key)) continue
        why = await describeBlockers(client, key)
        break // `served` without `own` would make this daemon look like one of a different ledger
      }
      // If two ledgers start at once without `starting`, both see each other here, and both stop.
      if (!isFirst) others = await readOthers(client, oid, ledger)
    }
    if (isFirst) await client.query('select pg_advisory_unlock($1, $2::bigint::oid::int)', [...starting])
    if (why !== null && why !== this.#blocked) this.#options.onError(new Error(why))
    this.#blocked = why
    return others
  }

  #lose(error: Error): void {
    if (this.#held !== null) hangUp(this.#held)
    this.#held = null
    if (this.#isClosed) return
    this.#options.onError(error)
    this.#lookIn(0)
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#look(), ms).unref()
  }

  /** A half-open connection reports no error, so the session is checked. */
  async #look(): Promise<void> {
    if (this.#held === null)
      await this.#renew().catch(() => {}) // capture gets the error from `hold`
    else await this.#assertStands(this.#held).catch((error: Error) => this.#lose(error))
    if (!this.#isClosed) this.#lookIn(this.#held === null ? reconnectMs : lookEveryMs)
  }

  async #assertStands(client: pg.Client): Promise<void> {
    const { table, readLedgerName } = this.#options
    const oid = await readOid(client, this.#name)
    if (oid === null || oid !== this.#heldOid) throw new Error('the outbox table was created again')
    if (this.#blocked === null) return
    const others = await this.#takeLocks(client, oid, await readLedgerName())
    if (others.length > 0) throw new ForeignLedger(table, others)
  }
}

async function tryLock(client: pg.Client, lockFunction: string, key: readonly [number, number]): Promise<boolean> {
  const { rows } = await client.query<{ taken: boolean }>(`select ${lockFunction}($1, $2::bigint::oid::int) as taken`, [
    ...key,
  ])
  return rows[0]?.taken ?? false
}

async function readUnsettledMs(client: pg.Client): Promise<number> {
  const results = (await client.query(
    `set local search_path = pg_catalog, pg_temp;
     select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8 * 1000 as "upMs"`,
  )) as unknown as pg.QueryResult<{ upMs: number }>[]
  return Math.min(settledMs, Math.max(0, settledMs - (results[1]?.rows[0]?.upMs ?? settledMs)))
}

/** A half-open connection never answers a goodbye, so none is awaited. */
function hangUp(client: pg.Client): void {
  void client.end().catch(() => {})
  client.connection.stream.destroy()
}
