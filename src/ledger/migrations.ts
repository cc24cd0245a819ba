import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { type Database, DatabaseUnusable } from '../postgres/database.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'
import { inMigrationSession } from '../postgres/migrationSession.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import { installPollQueue, type QueueVersions, readQueueVersions } from './queue.ts'

export const migrationsDir = join(import.meta.dirname, '..', '..', 'migrations')

/** Creates or upgrades the schemas `outboxd` and `pgboss`. A second run at the same time waits. */
export function migrateState(stateDatabaseUrl: string): Promise<string[]> {
  return inMigrationSession('STATE_DATABASE_URL', stateDatabaseUrl, async (client) => {
    await findMissing(client, stateDatabaseUrl) // refuses a newer version's ledger
    const applied: string[] = []
    for (let name = await applyNext(client); name !== null; name = await applyNext(client)) applied.push(name)
    await installPollQueue(stateDatabaseUrl)
    return applied
  })
}

const deadlocksMax = 10

async function applyNext(dbClient: pg.Client): Promise<string | null> {
  const { runner } = await import('node-pg-migrate') // only here, to save the daemon's memory
  for (let deadlocks = 1; ; deadlocks++) {
    try {
      const [applied] = await runner({
        dbClient,
        dir: migrationsDir,
        ignorePattern: `(?!${migrationFile.source}).*`,
        direction: 'up',
        count: 1,
        migrationsTable: 'migration',
        migrationsSchema: 'outboxd',
        createMigrationsSchema: true,
        advisoryLockMode: 'wait',
        log: () => {},
      })
      return applied?.name ?? null
    } catch (error) {
      // Daemons lock these tables in a different order.
      if (errorCodeOf(error) !== deadlock || deadlocks === deadlocksMax) throw error
      await dbClient.query('rollback')
      await dbClient.query('select pg_advisory_unlock_all()')
    }
  }
}

const deadlock = '40P01'

/** Only the ledger's migrations have numbers. Other files are for the outbox. */
const migrationFile = /\d{4}_.*\.sql$/

/** @throws DatabaseUnusable if the schemas are missing, too old or too new */
export async function assertMigrated(db: Database, stateDatabaseUrl: string): Promise<void> {
  const missing = await findMissing(db, stateDatabaseUrl)
  if (missing.length === 0) return
  const lacks = missing.length > 3 ? `${missing[0]} to ${missing.at(-1)}` : missing.join(', ')
  const why = `its schema outboxd lacks ${lacks}. Run \`outboxd migrate\` first`
  throw new DatabaseUnusable('STATE_DATABASE_URL', stateDatabaseUrl, why)
}

export function readMissingMigrations(stateDatabaseUrl: string): Promise<string[]> {
  return inMigrationSession('STATE_DATABASE_URL', stateDatabaseUrl, (client) => findMissing(client, stateDatabaseUrl))
}

/** @throws DatabaseUnusable if a newer version has migrated */
async function findMissing(db: Pick<Database, 'query'>, stateDatabaseUrl: string): Promise<string[]> {
  const files = (await readdir(migrationsDir)).filter((file) => migrationFile.test(file))
  const ours = files.map((file) => file.slice(0, -4)).sort()
  const { rows } = await db.query<{ exists: boolean }>(`select to_regclass('outboxd.migration') is not null as exists`)
  if (!rows[0]?.exists) return ours
  const migrations = await db.query<{ name: string }>('select name from outboxd.migration order by name')
  const applied = migrations.rows.map(({ name }) => name)
  const unknown = applied.filter((name) => !ours.includes(name))
  if (unknown.length === 0) return ours.filter((name) => !applied.includes(name))
  const why = `its schema outboxd has ${unknown.join(', ')} of a newer version of outboxd. Install that version here, too`
  throw new DatabaseUnusable('STATE_DATABASE_URL', stateDatabaseUrl, why)
}

/** The lock modes of pg_locks. */
type TableLock =
  | 'AccessExclusiveLock'
  | 'ExclusiveLock'
  | 'ShareRowExclusiveLock'
  | 'ShareLock'
  | 'ShareUpdateExclusiveLock'
  | 'RowExclusiveLock'
  | 'RowShareLock'
  | 'AccessShareLock'

export interface TableCost {
  table: string
  lock: TableLock
  /** Reads of the whole table. */
  reads: number
  /** Number of indexes that it builds. */
  indexes: number
  isRewritten: boolean
}

/** Measured while the migration ran (test/ledger/migrationCosts.test.ts). */
export interface MigrationCost {
  name: string
  /** Such as `index submission_done of submission`. */
  adds: string[]
  drops: string[]
  tables: TableCost[]
}

export async function readMigrationCosts(): Promise<MigrationCost[]> {
  return JSON.parse(await readFile(join(migrationsDir, 'costs.json'), 'utf8'))
}

/** Postgres's last estimate. Bytes without indexes and TOAST. */
export interface TableSize {
  rows: number
  bytes: number
}

export interface MigrationPlan {
  missing: MigrationCost[]
  sizes: ReadonlyMap<string, TableSize>
  queue: QueueVersions
}

/** Plans `migrate`. Locks nothing, and needs only the right to read outboxd.migration. */
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
