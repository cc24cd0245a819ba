import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { BindingMismatch } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import { type DatabaseAddress, isSignInRefused } from '../postgres/databaseAddress.ts'
import { daemonSessionNames } from '../postgres/sessionSettings.ts'

interface OtherDaemon {
  pid: number
  user: string | null
  /** Null for a local socket. */
  address: string | null
  since: string | null
}

export class LedgerMismatch extends BindingMismatch {
  override name = 'LedgerMismatch'
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
  return `a daemon of another ledger serves the outbox ${table} (${sessions.join('; ')}). STATE_DATABASE_URL is probably missing or wrong for one of the two daemons: compare \`outboxd config --effective\`, and stop the daemon with the wrong ledger. With \`state: none\`, then run \`outboxd adopt --same --start id:N\` for the right ledger, where N is the first row that the stopped daemon has not sent`
}

/**
 * Names the session that each daemon has in the outbox's database. The application_name says which ledger serves which
 * table, because every role can see application names.
 *
 *     starting   a new daemon adds this word to the name, looks for other ledgers, waits, and looks again
 *     serving    the daemon then drops the word, and looks once more
 *
 * A daemon that serves and lost its session names the new one without the word at once. It heeds only sessions that
 * serve, so a new daemon of another ledger cannot take its place. If two ledgers start at once, at least one sees the
 * other, because each names its session before it looks.
 *
 * Any role can choose this name, so a session counts only if its role may read the outbox or is a member of our role.
 */
function sessionNameOf(table: string, ledgerName: string): string {
  const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `${daemonSessionNames.registration} ${digest(table)} ${digest(ledgerName)}`
}

const starting = ' starting'

/** @param qualifiedTable quoted, with its schema */
export async function findDaemonsOfOtherLedgers(
  db: Database,
  qualifiedTable: string,
  ledgerName: string,
  { orStarting = false } = {},
): Promise<OtherDaemon[]> {
  const ours = sessionNameOf(qualifiedTable, ledgerName)
  const { rows } = await db.query<OtherDaemon>(
    `select pid, usename as user, host(client_addr) as address,
       to_char(backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
     from pg_stat_activity
     where datname = current_database() and starts_with(application_name, $2) and not starts_with(application_name, $3)
       and ($4 or right(application_name, ${starting.length}) <> '${starting}')
       and (has_any_column_privilege(usesysid, to_regclass($1)::oid, 'select') or pg_has_role(usesysid, current_user, 'member'))
     order by pid`,
    [qualifiedTable, ours.slice(0, ours.lastIndexOf(' ')), ours, orStarting],
  )
  return rows
}

const reconnectMs = 250
/** A new daemon waits until the server has run this long, so that daemons that served before reconnect first. */
const settledMs = 5_000
/** A serving daemon that lost its session has a new one within this time. */
const reconnectedMs = 500
const lookEveryMs = 5_000
const answerMs = 5_000
/**
 * Tries until a stopped daemon's session has surely ended. The waits are random, so that one of two ledgers gets
 * through.
 */
const tries = { most: 10, everyMaxMs: 500 }

/**
 * Lets the server end a dead daemon's session after 25 s, because the session keeps daemons of other ledgers out. The
 * server's timeouts must not end our session.
 */
const settings = `select set_config(name, case name when 'application_name' then $2 when 'tcp_keepalives_idle' then '10'
    when 'tcp_keepalives_interval' then '5' when 'tcp_keepalives_count' then '3' else '0' end, $1)
  from pg_settings where name in ('application_name', 'tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count',
    'idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`

interface RegistrationOptions {
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
  #hasStood = false
  #underWay: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: RegistrationOptions) {
    this.#options = options
  }

  /**
   * Registers the ledger, and again if the session broke.
   *
   * @throws LedgerMismatch if a daemon of a different ledger serves the table, Error if the database cannot answer
   */
  async ensureRegistered(): Promise<void> {
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
      if (turn >= tries.most || this.#isClosed) throw new LedgerMismatch(this.#options.table, others)
      await wait(Math.random() * tries.everyMaxMs)
    }
  }

  async #tryToRegister(ledger: string): Promise<OtherDaemon[]> {
    const { address, readTable } = this.#options
    const client = this.#createClient()
    try {
      await client.connect()
      if (!this.#hasStood) await wait(await readUnsettledMs(client))
      await client.query('begin; set local search_path = pg_catalog, pg_temp')
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
      // Behind a pooler, a session is ours for one transaction only. So the transaction stays open, without a snapshot.
      const isPooled = rows[0]?.pid !== (client as { processID?: number }).processID
      const table = await readTable()
      const others = await this.#nameSession(client, table, ledger, isPooled)
      if (others.length > 0 || this.#isClosed) {
        hangUp(client)
        return others
      }
      if (!isPooled) await client.query('commit')
      this.#held = client
      this.#hasStood = true
      return []
    } catch (error) {
      hangUp(client)
      if (isSignInRefused(error)) address.renew()
      throw error
    }
  }

  async #nameSession(client: pg.Client, table: string, ledger: string, isPooled: boolean): Promise<OtherDaemon[]> {
    const name = sessionNameOf(table, ledger)
    if (!this.#hasStood) {
      await client.query(settings, [isPooled, `${name}${starting}`])
      for (const waitMs of [0, reconnectedMs]) {
        await wait(waitMs)
        const others = await lookAgain(client, table, ledger, { orStarting: true })
        if (others.length > 0) return others
      }
    }
    await client.query(settings, [isPooled, name])
    return lookAgain(client, table, ledger, { orStarting: false })
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

  /** Runs a statement in the registered session, because a half-open connection reports no error. */
  async #look(): Promise<void> {
    if (this.#held === null)
      await this.#renew().catch(() => {}) // the next round of capture gets the error
    else await this.#held.query('select').catch((error: Error) => this.#lose(error))
    if (!this.#isClosed) this.#lookIn(this.#held === null ? reconnectMs : lookEveryMs)
  }
}

/** Within a transaction, Postgres would show the sessions of the first look again. */
async function lookAgain(client: pg.Client, table: string, ledger: string, options: { orStarting: boolean }) {
  await client.query('select pg_stat_clear_snapshot()')
  return findDaemonsOfOtherLedgers(client, table, ledger, options)
}

async function readUnsettledMs(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ upMs: number }>(
    `select pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() operator(pg_catalog.-) pg_catalog.pg_postmaster_start_time())
       operator(pg_catalog.*) 1000 as "upMs"`,
  )
  return Math.min(settledMs, Math.max(0, settledMs - (rows[0]?.upMs ?? settledMs)))
}

/** Does not wait for the server's answer, because a half-open connection never gets one. */
function hangUp(client: pg.Client): void {
  void client.end().catch(() => {})
  client.connection.stream.destroy()
}
