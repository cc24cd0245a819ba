import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runner } from 'node-pg-migrate'
import pg from 'pg'
import { outboxTableName } from './outboxTable.ts'
import { installQueue } from './queue.ts'

const migrationsDir = join(import.meta.dirname, '..', '..', 'migrations')

/**
 * Creates or upgrades our schema `outboxd` and pg-boss's, safe to run twice and from two processes at once: the second
 * waits for the first.
 *
 * @returns the names of the migrations that were applied, none when all was up to date
 */
export async function migrateState(stateDatabaseUrl: string): Promise<string[]> {
  const applied = await runner({
    databaseUrl: stateDatabaseUrl,
    dir: migrationsDir,
    ignorePattern: '(\\..*|.*/.*|outbox.*)',
    direction: 'up',
    migrationsTable: 'migration',
    migrationsSchema: 'outboxd',
    createMigrationsSchema: true,
    advisoryLockMode: 'wait',
    log: () => {},
  })
  await installQueue(stateDatabaseUrl)
  return applied.map((migration) => migration.name)
}

/**
 * Creates the outbox table of design.md section 10 where it does not exist, with the trigger that wakes the daemon.
 *
 * @param outboxTable name, or schema.name
 */
export async function migrateOutbox(databaseUrl: string, outboxTable: string): Promise<void> {
  const template = await readFile(join(migrationsDir, 'outbox.sql'), 'utf8')
  const { qualified, trigger, index } = outboxTableName(outboxTable)
  const sql = template.replaceAll(':table', qualified).replaceAll(':trigger', trigger).replaceAll(':index', index)
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 })
  await client.connect()
  try {
    // One statement string is one transaction; the lock makes a second process wait instead of collide.
    await client.query(`begin; select pg_advisory_xact_lock(hashtext('outboxd migrate --outbox')); ${sql}; commit`)
  } finally {
    await client.end()
  }
}
