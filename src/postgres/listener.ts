import pg from 'pg'
import { queryOne } from './database.ts'
import { sessionNameOf } from './ledgerSchema.ts'
import { currentUrl, type DatabaseUrl } from './sessionPool.ts'
import { applySessionSettings, daemonSessionNames } from './sessionSettings.ts'

export type SleepFlagResult =
  /** The sleep flag is set from now on. Earlier inserts did not notify, so look at the table once more. */
  | 'set'
  /** The sleep flag was set before, so a new row notifies this daemon. */
  | 'asleep'
  /** Open transactions have inserted rows and will not notify. */
  | 'writers'
  /**
   * Another daemon has set the sleep flag, the listener has no connection, or only a pooler's, or the table has no trigger
   * that notifies while the flag is set.
   */
  | 'unavailable'

export interface Listener {
  setSleepFlag(): Promise<SleepFlagResult>
  clearSleepFlag(): void
  close(): Promise<void>
}

export interface ListenerDeps {
  url: DatabaseUrl
  channel: string
  /** Quoted, with its schema. */
  table: string
  onNotice(): void
  onError(error: Error): void
}

const reconnectMs = 2_000
const answerMs = 5_000 // not statement_timeout, which a pooler refuses at connection

/** The first key of the lock in migrations/outbox_wake.sql; the second is the table's oid. */
const lockClass = 1_869_968_482

/** Lets the server notice a dead peer in 25 s. */
const settings = {
  search_path: 'pg_catalog, pg_temp',
  tcp_keepalives_idle: '10',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
}

const setFlagSql = `select case
    when current_setting('transaction_read_only')::boolean then 'read-only'
    when not exists (select from pg_trigger g join pg_proc p on p.oid = g.tgfoid
      where g.tgrelid = to_regclass($2)::oid and p.proname = 'outboxd_wake'::name
        and (g.tgenabled = 'O'::"char" or g.tgenabled = 'A'::"char")) then 'unavailable'
    when pg_try_advisory_lock($1, to_regclass($2)::oid::int) then 'set'
    when exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted
      and database = (select oid from pg_database where datname = current_database())
      and classid = $1::oid and objid = to_regclass($2)::oid and objsubid = 2) then 'unavailable'
    else 'writers' end as result`

/**
 * Connects again after a break, and when the server is read-only, because rows are then written elsewhere. Notices can be
 * missed, so callers must also look at the table themselves.
 *
 * A NOTIFY takes a lock of the ERP's whole cluster, so inserts send one only while a daemon's sleep flag, a lock, is set
 * (migrations/outbox_wake.sql).
 */
export function openListener({ url, channel, table, onNotice, onError }: ListenerDeps): Listener {
  let closed = false
  let client: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined
  let isReady = false
  let isSleepFlagSet = false

  function again(error: Error) {
    if (closed || timer) return
    isReady = false
    isSleepFlagSet = false
    onError(error)
    hangUp(client)
    timer = setTimeout(() => {
      timer = undefined
      void connect()
    }, reconnectMs)
  }

  function clearSleepFlag() {
    if (!isSleepFlagSet) return
    isSleepFlagSet = false
    client?.query('select pg_advisory_unlock_all()').catch(again)
  }

  async function connect() {
    const next = new pg.Client({
      connectionString: currentUrl(url),
      application_name: sessionNameOf(currentUrl(url), daemonSessionNames.listen),
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
      query_timeout: answerMs,
    })
    client = next
    next.on('error', again)
    next.on('end', () => again(new Error('the connection that listens was ended')))
    next.on('notification', () => {
      clearSleepFlag()
      onNotice()
    })
    try {
      await next.connect()
      // False behind a pooler: its sessions, with what they listen to and lock, serve other programs.
      const isOwnSession = await applySessionSettings(next, settings)
      if (isOwnSession) await next.query(`listen ${pg.escapeIdentifier(channel)}`)
      isReady = isOwnSession
      onNotice() // rows that came before the connection
    } catch (error) {
      again(error as Error)
    }
  }

  void connect()
  return {
    async setSleepFlag() {
      const asked = client
      if (!isReady || closed || asked === undefined) return 'unavailable'
      const wasSet = isSleepFlagSet
      // A notification that comes before the answer must not release the lock that this statement takes.
      isSleepFlagSet = false
      try {
        const values = [lockClass, table]
        const { result } = await queryOne<{ result: SleepFlagResult | 'read-only' }>(asked, setFlagSql, values)
        if (result === 'read-only') throw new Error('the server of the listening connection is read-only')
        if (asked !== client) return 'unavailable'
        isSleepFlagSet = result === 'set'
        return isSleepFlagSet && wasSet ? 'asleep' : result
      } catch (error) {
        again(error as Error)
        return 'unavailable'
      }
    },
    clearSleepFlag,
    async close() {
      closed = true
      clearTimeout(timer)
      hangUp(client)
    },
  }
}

/** Also destroys the socket, because a half-open connection never answers. */
function hangUp(client: pg.Client | undefined): void {
  void client?.end().catch(() => {})
  client?.connection.stream.destroy()
}
