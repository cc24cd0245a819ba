import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { packageFolder } from '../packageFolder.ts'
import { type Database, DatabaseUnusable, queryOne, readLedgerSchema } from '../postgres/database.ts'
import { ledgerSchemaOf } from '../postgres/ledgerSchema.ts'
import { inMigrationSession } from '../postgres/migrationSession.ts'
import { installPollQueue } from './queue.ts'

export const migrationsDir = join(packageFolder, 'migrations')

/** Creates or upgrades the schemas `outboxd` and `outboxd_jobs`. Waits for another run. @returns the applied migrations */
export function migrateLedger(databaseUrl: string): Promise<string[]> {
  return inMigrationSession(databaseUrl, 'catalog', async (client) => {
    const applied: string[] = []
    for (let name = await applyNext(client, databaseUrl); name !== null; name = await applyNext(client, databaseUrl))
      applied.push(name)
    await installPollQueue(databaseUrl)
    return applied
  })
}

async function applyNext(client: pg.Client, databaseUrl: string): Promise<string | null> {
  await client.query('begin')
  try {
    await client.query(`select pg_advisory_xact_lock(hashtextextended('outboxd migrate', 0))`)
    const name = await applyNextMissing(client, databaseUrl)
    await client.query('commit')
    return name
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

async function applyNextMissing(client: pg.Client, databaseUrl: string): Promise<string | null> {
  const [name] = await findMissing(client, databaseUrl)
  if (name === undefined) return null
  const { hasSchema } = await queryOne<{ hasSchema: boolean }>(
    client,
    `select exists (select from pg_namespace where nspname = 'outboxd'::name) as "hasSchema"`,
  )
  if (!hasSchema) await client.query('create schema outboxd')
  await client.query(
    `create table if not exists outboxd.migration (
       name text primary key,
       applied_at timestamptz not null default clock_timestamp()
     )`,
  )
  await client.query(await readFile(join(migrationsDir, `${name}.sql`), 'utf8'))
  await client.query('insert into outboxd.migration (name) values ($1)', [name])
  return name
}

/** The ledger's migrations have numbers. Files without a number are for the outbox. */
const migrationFile = /\d{4}_.*\.sql$/

/** @throws DatabaseUnusable if the schemas are missing, too old or too new */
export async function assertMigrated(db: Database, databaseUrl: string): Promise<void> {
  const missing = await findMissing(db, databaseUrl)
  if (missing.length === 0) return
  const lacks = missing.length > 3 ? `${missing[0]} to ${missing.at(-1)}` : missing.join(', ')
  const why = `its schema ${ledgerSchemaOf(databaseUrl)} lacks the migrations ${lacks}. Run \`outboxd migrate\` first`
  throw new DatabaseUnusable(databaseUrl, why)
}

export function readMissingMigrations(databaseUrl: string): Promise<string[]> {
  return inMigrationSession(databaseUrl, 'catalog', (client) => findMissing(client, databaseUrl))
}

/** @throws DatabaseUnusable if a newer version has migrated */
async function findMissing(db: Pick<Database, 'query'>, databaseUrl: string): Promise<string[]> {
  const files = (await readdir(migrationsDir)).filter((file) => migrationFile.test(file))
  const ours = files.map((file) => file.slice(0, -4)).sort()
  const { exists } = await queryOne<{ exists: boolean }>(
    db,
    `select to_regclass('outboxd.migration') is not null as exists`,
  )
  if (!exists) return ours
  const migrations = await db.query<{ name: string }>('select name from outboxd.migration order by name')
  const applied = migrations.rows.map(({ name }) => name)
  const unknown = applied.filter((name) => !ours.includes(name))
  if (unknown.length === 0) return ours.filter((name) => !applied.includes(name))
  const why = `its schema ${ledgerSchemaOf(databaseUrl)} has migrations of a newer version of outboxd (${unknown.join(', ')}). Install that version here, too`
  throw new DatabaseUnusable(databaseUrl, why)
}

const sequences = [
  ['submission', 'seq'],
  ['submission_event', 'id'],
  ['operator_act', 'id'],
  ['request', 'id'],
] as const

/**
 * Finds sequences that are behind their tables, because logical replication copies rows but not sequences. Does
 * not compare submissions, because no index can find the highest `seq` of submissions. @returns statements that set them
 */
export async function findSequencesBehindTables(db: Database): Promise<string[]> {
  const isBehind = (table: 'submission_event' | 'operator_act' | 'request') =>
    `case when pg_catalog.has_sequence_privilege('outboxd.${table}_id_seq', 'select, usage')
       then coalesce((select max(id) from outboxd.${table}) > coalesce(pg_catalog.pg_sequence_last_value('outboxd.${table}_id_seq'::regclass), 0), false)
       else false end`
  const { lost } = await queryOne<{ lost: boolean }>(
    db,
    `select ${isBehind('submission_event')} or ${isBehind('operator_act')} or ${isBehind('request')} as lost`,
  )
  if (!lost) return []
  const schema = await readLedgerSchema(db)
  return sequences.map(
    ([table, column]) => `select setval('${schema}.${table}_${column}_seq', max(${column})) from ${schema}.${table}`,
  )
}

/** @throws DatabaseUnusable if sequences are behind their tables */
export async function assertSequencesAreAhead(db: Database, databaseUrl: string): Promise<void> {
  if ((await findSequencesBehindTables(db)).length === 0) return
  const why =
    'its sequences would give out numbers that its tables already have. `outboxd check` prints the statements that set them'
  throw new DatabaseUnusable(databaseUrl, why)
}
