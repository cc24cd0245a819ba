import pg from 'pg'
import { tellAway } from './databaseAway.ts'

/** How long is waited for what; the server's limits are lower than ours, so that its word about a statement is known. */
interface Limits {
  max: number
  statement_timeout: number
  lock_timeout: number
  query_timeout: number
}

/** A request is answered within seconds, whoever holds a lock. */
export const forRequests: Limits = { max: 6, statement_timeout: 5_000, lock_timeout: 1_000, query_timeout: 15_000 }

/** A read of the whole ledger may take longer, and shall not hold up requests. */
export const forControl: Limits = { max: 2, statement_timeout: 60_000, lock_timeout: 5_000, query_timeout: 65_000 }

const lastWordMs = 300

/** Connections to the database that can be ended though one of them is busy. */
export class Connections {
  readonly pool: pg.Pool
  readonly #clients = new Set<pg.PoolClient>()

  constructor(databaseUrl: string, synchronousCommit: 'on' | 'off', limits: Limits) {
    this.pool = new pg.Pool({
      connectionString: databaseUrl,
      connectionTimeoutMillis: 5_000,
      application_name: 'outboxd sandbox',
      options: `-c synchronous_commit=${synchronousCommit}`,
      ...limits,
    })
    // Without a listener, a connection that Postgres ends would end this process; the next query takes a new one.
    this.pool.on('error', () => {})
    this.pool.on('connect', (client) => {
      client.on('error', () => {})
      this.#clients.add(client)
    })
    this.pool.on('remove', (client) => void this.#clients.delete(client))
    tellAway(this.pool)
  }

  async end(): Promise<void> {
    const impatience = setTimeout(() => {
      for (const client of this.#clients) void client.end()
    }, lastWordMs)
    await this.pool.end()
    clearTimeout(impatience)
  }
}
