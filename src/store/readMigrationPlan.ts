import { type QueueVersions, readQueueVersions } from '../ledger/queue.ts'
import type { Database } from '../postgres/database.ts'
import { inspectDatabase } from './inspectDatabase.ts'
import { findMissing } from './migrateStores.ts'
import { type MigrationCost, readMigrationCosts } from './migrationCosts.ts'

/** Of a table of the ledger; rows as Postgres has last estimated them. */
export interface TableSize {
  rows: number
  /** Of its rows alone: neither indexes nor what is kept out of line. */
  bytes: number
}

export interface MigrationPlan {
  /** Those that `migrate` would apply, in their order. */
  missing: MigrationCost[]
  /** Every table of the ledger as it is. */
  sizes: ReadonlyMap<string, TableSize>
  queue: QueueVersions
}

/**
 * What `migrate` would do to the ledger, and how large its tables are. Nothing is locked or changed, and no right is needed but
 * to read which migrations were applied.
 *
 * @throws DatabaseUnusable where the database cannot be reached, or a newer version has migrated it
 */
export function readMigrationPlan(stateDatabaseUrl: string): Promise<MigrationPlan> {
  return inspectDatabase({
    variable: 'STATE_DATABASE_URL',
    url: stateDatabaseUrl,
    async look(db) {
      const missing = await findMissing(db, stateDatabaseUrl)
      const costs = await readMigrationCosts()
      return {
        missing: costs.filter(({ name }) => missing.includes(name)),
        sizes: await readSizes(db),
        queue: await readQueueVersions(db),
      }
    },
  })
}

async function readSizes(db: Database): Promise<Map<string, TableSize>> {
  const { rows } = await db.query<TableSize & { table: string }>(
    `select c.relname as table, greatest(c.reltuples, 0)::float8 as rows, pg_relation_size(c.oid)::float8 as bytes
     from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'outboxd' and c.relkind = 'r'`,
  )
  return new Map(rows.map(({ table, ...size }) => [table, size]))
}
