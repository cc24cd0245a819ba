import { setTimeout as after } from 'node:timers/promises'
import { openPool } from '../../test/support/postgres.ts'
import type { Environment } from './environment.ts'
import type { LostSpan } from './history.ts'
import { retryPatiently } from './retryPatiently.ts'
import type { SeededRandom } from './seededRandom.ts'

/** Failovers and restores of the ledger's database. */
export interface ServerFaults extends AsyncDisposable {
  /** Kills the primary with SIGKILL and promotes its standby. @returns 0 if the standby may lack claims, otherwise 1 */
  failOver(): Promise<number>
  /** Restores the ledger's database to a state of some seconds ago, but not the outbox. */
  restore(random: SeededRandom): Promise<void>
  /** Time spans whose commits were lost. */
  readonly lost: readonly LostSpan[]
}

const awaitedWithinMs = 5_000
const backMs = [500, 8_000] as const
/** Until then, a request whose claim was lost may still leave, because its permit ends after 8 s. */
const stillLeavesMs = 8_000
const copy = 'state_backup'

export function createServerFaults({ cluster, config }: Environment): ServerFaults {
  const lost: LostSpan[] = []
  const ledger = new URL(config.stateDatabaseUrl).pathname.slice(1)
  const server = openPool(cluster.clientUrl, { max: 1, connectionTimeoutMillis: 5_000 })
  server.on('connect', (client) => client.on('error', () => {}))

  /** Each step may be repeated while the server restarts, because each statement takes effect only once. */
  const step = (text: string, isDone: (databases: ReadonlySet<string>) => boolean) =>
    retryPatiently(async () => {
      const { rows } = await server.query<{ name: string }>('select datname as name from pg_database')
      if (!isDone(new Set(rows.map(({ name }) => name)))) await server.query(text)
    })
  const allowSessions = (allowed: boolean) => step(`alter database ${ledger} allow_connections ${allowed}`, () => false)

  /** Ends all sessions, because a database with sessions cannot be copied. */
  async function backUp(): Promise<void> {
    await allowSessions(false)
    await retryPatiently(async () => {
      await server.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1', [ledger])
      await server.query(`drop database if exists ${copy}`)
      await server.query(`create database ${copy} template ${ledger}`)
    })
    await allowSessions(true)
  }

  async function putBack(): Promise<void> {
    await step(`drop database ${ledger} with (force)`, (databases) => !databases.has(ledger) || !databases.has(copy))
    await step(`alter database ${copy} rename to ${ledger}`, (databases) => !databases.has(copy))
  }

  return {
    lost,
    failOver: () =>
      cluster.alone(async () => {
        const untilMs = performance.now() + awaitedWithinMs
        while (!(await cluster.isAwaited().catch(() => false))) {
          if (performance.now() > untilMs) return 0
          await after(100)
        }
        await cluster.promote()
        await cluster.follow()
        return 1
      }),
    async restore(random) {
      const fromUs = Date.now() * 1000
      await cluster.alone(backUp)
      await after(random.whole(...backMs))
      await cluster.alone(putBack)
      lost.push({ fromUs, untilUs: (Date.now() + stillLeavesMs) * 1000 })
    },
    [Symbol.asyncDispose]: () => server.end(),
  }
}
