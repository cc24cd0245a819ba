import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { type Database, DatabaseUnusable } from '../postgres/database.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'
import { inMigrationSession } from '../postgres/migrationSession.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import { installPollQueue, type QueueVersions, readQueueVersions } from './queue.ts'

export const migrationsDir = join(import.meta.dirname, '..', '..', 'migrations')

/** Creates or upgrades the schemas `outboxd` and `pgboss`. Waits for another run. @returns the applied migrations */
export function migrateLedger(stateDatabaseUrl: string): Promise<string[]> {
  return inMigrationSession('STATE_DATABASE_URL', stateDatabaseUrl, async (client) => {
    await findMissing(client, stateDatabaseUrl) // throws if a newer version has migrated
    const applied: string[] = []
    for (let name = await applyNext(client); name !== null; name = await applyNext(client)) applied.push(name)
    await installPollQueue(stateDatabaseUrl)
    return applied
  })
}

const deadlocksMax = 10

async function applyNext(dbClient: pg.Client): Promise<string | null> {
  const { runner } = await import('node-pg-migrate') // imported only here, to save the daemon's memory
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
      // Daemons lock these tables in a different order, so a deadlock may occur.
      if (errorCodeOf(error) !== deadlock || deadlocks === deadlocksMax) throw error
      await dbClient.query('rollback')
      await dbClient.query('select pg_advisory_unlock_all()')
    }
  }
}

const deadlock = '40P01'

/** The ledger's migrations have numbers. Files without a number are for the outbox. */
const migrationFile = /\d{4}_.*\.sql$/

/** @throws DatabaseUnusable if the schemas are missing, too old or too new */
export async function assertMigrated(db: Database, stateDatabaseUrl: string): Promise<void> {
  const missing = await findMissing(db, stateDatabaseUrl)
  if (missing.length === 0) return
  const lacks = missing.length > 3 ? `${missing[0]} to ${missing.at(-1)}` : missing.join(', ')
  const why = `its schema outboxd lacks the migrations ${lacks}. Run \`outboxd migrate\` first`
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
  const why = `its schema outboxd has migrations of a newer version of outboxd (${unknown.join(', ')}). Install that version here, too`
  throw new DatabaseUnusable('STATE_DATABASE_URL', stateDatabaseUrl, why)
}

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
  /** How often the whole table is read. */
  reads: number
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

/** Postgres's last estimate of a table's rows, and the table's bytes without indexes and TOAST. */
export interface TableSize {
  rows: number
  bytes: number
}

export interface MigrationPlan {
  missing: MigrationCost[]
  sizes: ReadonlyMap<string, TableSize>
  queue: QueueVersions
}

/** Locks nothing, and needs only the right to read outboxd.migration. */
export function readMigrationPlan(stateDatabaseUrl: string): Promise<MigrationPlan> {
  return inspectDatabase({
    variable: 'STATE_DATABASE_URL',
    url: stateDatabaseUrl,
    async read(db) {
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

/** A constraint, an index or a trigger of the ledger. */
export interface SchemaPart {
  /** Such as `constraint clock_pkey of clock`. */
  name: string
  sql: string
  /** True if only speed is lost without the part. */
  isForSpeed: boolean
}

interface FoundSchemaPart extends SchemaPart {
  /** SQL that makes an invalid or disabled part valid; null if the part is valid. */
  mendedBy: string | null
}

/**
 * Reads constraints, indexes and triggers in the order in which they can be created. Leaves out NOT NULL, which is not
 * a constraint on older servers.
 */
export async function readSchemaParts(db: Database): Promise<FoundSchemaPart[]> {
  const { rows } = await db.query<FoundSchemaPart>(
    `with mine as (select c.oid, c.relname from pg_catalog.pg_class c where c.relnamespace = to_regnamespace('outboxd')),
     part as (
       select case when n.contype = 'f' then 2 else 0 end as rank, 'constraint ' || n.conname || ' of ' || mine.relname as name, false as "isForSpeed",
         'alter table outboxd.' || mine.relname || ' add constraint ' || n.conname || ' ' || pg_catalog.pg_get_constraintdef(n.oid) as sql,
         case when not n.convalidated then 'alter table outboxd.' || mine.relname || ' validate constraint ' || n.conname end as "mendedBy"
       from pg_catalog.pg_constraint n join mine on mine.oid = n.conrelid
       where n.contype <> 'n'
       union all
       select 1, 'index ' || i.relname || ' of ' || mine.relname, not x.indisunique, pg_catalog.pg_get_indexdef(i.oid),
         case when not x.indisvalid then 'reindex index outboxd.' || i.relname end
       from pg_catalog.pg_index x join mine on mine.oid = x.indrelid join pg_catalog.pg_class i on i.oid = x.indexrelid
       where not exists (select from pg_catalog.pg_constraint n where n.conindid = i.oid and n.contype in ('p', 'u', 'x'))
       union all
       select 3, 'trigger ' || t.tgname || ' of ' || mine.relname, false, pg_catalog.pg_get_triggerdef(t.oid),
         case when t.tgenabled = 'D' then 'alter table outboxd.' || mine.relname || ' enable trigger ' || t.tgname end
       from pg_catalog.pg_trigger t join mine on mine.oid = t.tgrelid
       where not t.tgisinternal
     )
     select name, sql, "isForSpeed", "mendedBy" from part order by rank, name collate "C"`,
  )
  return rows
}

export async function findMissingOrBrokenSchemaParts(db: Database): Promise<SchemaPart[]> {
  const expected: SchemaPart[] = JSON.parse(await readFile(join(migrationsDir, 'structure.json'), 'utf8'))
  const there = new Map((await readSchemaParts(db)).map((part) => [part.name, part]))
  return expected.flatMap((part) => {
    const found = there.get(part.name)
    if (found === undefined) return [part]
    const { mendedBy } = found
    return mendedBy === null || part.sql.endsWith(' NOT VALID') ? [] : [{ ...part, sql: mendedBy }]
  })
}

const sequences = [
  ['submission', 'seq'],
  ['submission_event', 'id'],
  ['operator_act', 'id'],
] as const

/**
 * Finds sequences that are behind their tables, because logical replication copies rows but not sequences. Compares
 * only the two logs, because no index can find the highest `seq` of submissions.
 */
export async function findSequencesBehindTables(db: Database): Promise<SchemaPart[]> {
  const isBehind = (table: 'submission_event' | 'operator_act') =>
    `case when pg_catalog.has_sequence_privilege('outboxd.${table}_id_seq', 'select, usage')
       then coalesce((select max(id) from outboxd.${table}) > coalesce(pg_catalog.pg_sequence_last_value('outboxd.${table}_id_seq'::regclass), 0), false)
       else false end`
  const { rows } = await db.query<{ lost: boolean }>(
    `select ${isBehind('submission_event')} or ${isBehind('operator_act')} as lost`,
  )
  if (!rows[0]?.lost) return []
  return sequences.map(([table, column]) => ({
    name: `position of the sequence of ${table}.${column}`,
    sql: `select setval('outboxd.${table}_${column}_seq', max(${column})) from outboxd.${table}`,
    isForSpeed: false,
  }))
}

/** @throws DatabaseUnusable if a part is missing without which a record may be sent twice */
export async function assertSchemaComplete(db: Database, stateDatabaseUrl: string): Promise<void> {
  const parts = [...(await findMissingOrBrokenSchemaParts(db)), ...(await findSequencesBehindTables(db))]
  const missing = parts.filter(({ isForSpeed }) => !isForSpeed)
  if (missing.length === 0) return
  const named = missing
    .slice(0, 3)
    .map(({ name }) => name)
    .join(', ')
  const more = missing.length > 3 ? ` and ${missing.length - 3} more` : ''
  const why = `its schema outboxd lacks ${named}${more}. It was restored in part, or a part was dropped. \`outboxd check\` prints the statements that create what is missing`
  throw new DatabaseUnusable('STATE_DATABASE_URL', stateDatabaseUrl, why)
}
