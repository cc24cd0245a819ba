import type pg from 'pg'
import type { EmbeddedPostgres } from '../../../test/support/postgres.ts'
import { createDatabaseOn, migrateAll, openPool, startPostgres } from '../../../test/support/postgres.ts'

/** A database with our schemas and an outbox, on the benchmark's own server. */
export interface BenchDatabase {
  readonly url: string
  readonly pool: pg.Pool
}

/** The benchmark's own PostgreSQL, with the durability of production: fsync and synchronous_commit are on. */
export interface BenchPostgres extends AsyncDisposable {
  readonly server: EmbeddedPostgres
  createDatabase(name: string): Promise<BenchDatabase>
}

/** Starts a server with PostgreSQL's defaults and with pg_stat_statements, from which the figures come. */
export async function startBenchPostgres(settings: Record<string, string> = {}): Promise<BenchPostgres> {
  // process.exit also ends the programs that were started.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const server = await startPostgres({ shared_preload_libraries: 'pg_stat_statements', ...settings })
  const pools: pg.Pool[] = []
  return {
    server,
    async createDatabase(name) {
      const url = await createDatabaseOn(server.url, name)
      await migrateAll(url)
      const pool = openPool(url, { max: 4, application_name: 'bench' })
      pools.push(pool)
      await pool.query('create extension pg_stat_statements')
      return { url, pool }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(pools.map((pool) => pool.end()))
      await server.stop()
    },
  }
}

/**
 * Writes records as an ERP would.
 * @param keys 0: no record has a key, so that none waits for another
 * @param analyzes false: the table's statistics stay as they are
 */
export async function fillOutbox(
  { pool }: BenchDatabase,
  rows: number,
  { keys = 0, analyzes = true }: { keys?: number; analyzes?: boolean } = {},
): Promise<void> {
  await pool.query(
    `insert into outbox (type, key, payload)
     select 'data', 'K' || n % nullif($2, 0), jsonb_build_object('customerId', 'C' || (n % 1000), 'orderDate', '2026-11-21T10:00:00Z',
       'amount', (n % 100000) / 100.0, 'field1', 'value1', 'field2', 'record ' || n)
     from generate_series(1, $1) n`,
    [rows, keys],
  )
  if (analyzes) await pool.query('vacuum (analyze) outbox')
}
