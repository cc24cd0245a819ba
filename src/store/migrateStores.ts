import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { ownNames } from '../ledger/ownNames.ts'
import { installQueue } from '../ledger/queue.ts'
import { outboxTableName } from '../outbox/outboxTableName.ts'
import { type Database, DatabaseUnusable, withDatabase } from '../postgres/database.ts'
import { encodingWarning, readEncoding, refusedEncoding } from '../postgres/serverEncoding.ts'
import { asText, ownSettings, takeOwnSettings } from '../postgres/sessionSettings.ts'
import { codeOf, waitedForLock } from '../postgres/sqlState.ts'

export const migrationsDir = join(import.meta.dirname, '..', '..', 'migrations')

/**
 * Creates or upgrades our schema `outboxd` and pg-boss's, safe to run twice and from two processes at once: the second
 * waits for the first.
 *
 * @returns the names of the migrations that were applied, none when all was up to date
 * @throws DatabaseUnusable where a newer version has migrated, or another session is in the way
 */
export function migrateState(stateDatabaseUrl: string): Promise<string[]> {
  return impatiently('STATE_DATABASE_URL', stateDatabaseUrl, async (client) => {
    assertKnown((await compareMigrations(client)).unknown, stateDatabaseUrl)
    const applied: string[] = []
    for (let name = await applyNext(client); name !== null; name = await applyNext(client)) applied.push(name)
    await installQueue(stateDatabaseUrl)
    return applied
  })
}

const deadlocksMax = 10

/** Applies the first migration that is missing, in a transaction of its own. @returns its name, null where none is */
async function applyNext(dbClient: pg.Client): Promise<string | null> {
  const { runner } = await import('node-pg-migrate') // only here: the daemon need not carry it in memory
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
      // Daemons that run take the same tables' locks in another order. Postgres has ended one of the two.
      if (codeOf(error) !== deadlock || deadlocks === deadlocksMax) throw error
      await dbClient.query('rollback')
      await dbClient.query('select pg_advisory_unlock_all()')
    }
  }
}

const deadlock = '40P01'

/** Ours are numbered; what else lies in the folder is no migration of the state. */
const migrationFile = /\d{4}_.*\.sql$/

/** @throws DatabaseUnusable where the schemas are missing or older than this version needs, or newer than it knows */
export async function assertMigrated(db: Database, stateDatabaseUrl: string): Promise<void> {
  const { missing, unknown } = await compareMigrations(db)
  assertKnown(unknown, stateDatabaseUrl)
  if (missing.length === 0) return
  const lacks = missing.length > 3 ? `${missing[0]} to ${missing.at(-1)}` : missing.join(', ')
  const why = `its schema outboxd lacks ${lacks}: run \`outboxd migrate\` first`
  throw new DatabaseUnusable('STATE_DATABASE_URL', stateDatabaseUrl, why)
}

/** @throws DatabaseUnusable where a newer version has migrated */
function assertKnown(unknown: readonly string[], stateDatabaseUrl: string): void {
  if (unknown.length === 0) return
  const why = `its schema outboxd has ${unknown.join(', ')}, of a version newer than this one, which cannot know what that means: run the newer version here, too`
  throw new DatabaseUnusable('STATE_DATABASE_URL', stateDatabaseUrl, why)
}

/** The names of the migrations that `migrateState` would apply. */
export function readMissing(stateDatabaseUrl: string): Promise<string[]> {
  return impatiently('STATE_DATABASE_URL', stateDatabaseUrl, (client) => findMissing(client, stateDatabaseUrl))
}

/** The same on a connection. @throws DatabaseUnusable where a newer version has migrated */
export async function findMissing(db: Pick<Database, 'query'>, stateDatabaseUrl: string): Promise<string[]> {
  const { missing, unknown } = await compareMigrations(db)
  assertKnown(unknown, stateDatabaseUrl)
  return missing
}

/** What this version has and the ledger not, and what the ledger has and this version not. */
async function compareMigrations(db: Pick<Database, 'query'>): Promise<{ missing: string[]; unknown: string[] }> {
  const ours = (await readdir(migrationsDir))
    .filter((file) => migrationFile.test(file))
    .map((file) => file.slice(0, -4))
    .sort()
  const { rows } = await db.query<{ exists: boolean }>(`select to_regclass('outboxd.migration') is not null as exists`)
  const applied = rows[0]?.exists
    ? (await db.query<{ name: string }>('select name from outboxd.migration order by name')).rows.map(
        ({ name }) => name,
      )
    : []
  return {
    missing: ours.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !ours.includes(name)),
  }
}

/** @throws DatabaseUnusable where the database does not know which characters its texts hold */
export async function assertEncoding(db: Pick<Database, 'query'>, variable: string, url: string): Promise<void> {
  const refusal = refusedEncoding(await readEncoding(db))
  if (refusal !== null) throw new DatabaseUnusable(variable, url, refusal)
}

/** What to know of a database whose encoding is not UTF8; null where it is. */
export const readEncodingWarning = (variable: string, url: string): Promise<string | null> =>
  impatiently(variable, url, async (client) => encodingWarning(await readEncoding(client)))

/** What holds in the ERP's database after `migrate --outbox`. */
export interface OutboxMigrated {
  /** Whether inserts wake the daemon. */
  wakes: boolean
  /** The server's max_prepared_transactions: above 0, somebody may use two-phase commit, which NOTIFY makes fail. */
  preparedMax: number
}

/**
 * Creates the outbox table of migrations/outbox.sql where it does not exist, with the trigger that wakes the daemon or
 * without, and renews the trigger of an earlier version. Does not wait long for a lock that the ERP holds.
 *
 * @param outboxTable name, or schema.name
 * @param wake whether the trigger is wanted; null: where no transaction can be prepared
 */
export async function migrateOutbox(
  databaseUrl: string,
  outboxTable: string,
  wake: boolean | null = null,
): Promise<OutboxMigrated> {
  return impatiently('DATABASE_URL', databaseUrl, async (client) => {
    const { rows } = await client.query<{ max: number }>(
      `select current_setting('max_prepared_transactions')::int as max`,
    )
    const preparedMax = rows[0]?.max ?? 0
    const wakes = wake ?? preparedMax === 0
    const schema = await readCreationSchema(client)
    // One statement string is one transaction; the lock makes a second process wait instead of collide.
    await client.query(
      `begin; set local search_path = pg_catalog, pg_temp;
       select pg_advisory_xact_lock(hashtext('outboxd migrate --outbox'));
       ${await outboxStatements(outboxTable, schema, wakes)}; commit`,
    )
    return { wakes, preparedMax }
  })
}

/** The schema in which the role makes what it names without one. @throws Error if its search path has none */
async function readCreationSchema(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ schema: string | null }>('select pg_catalog.current_schema() as schema')
  const schema = rows[0]?.schema ?? null
  if (schema === null) throw new Error('the search path of this role has no schema in which to create the outbox table')
  return schema
}

async function outboxStatements(outboxTable: string, schema: string, wakes: boolean): Promise<string> {
  const { qualified: named, trigger, index } = outboxTableName(outboxTable)
  const home = pg.escapeIdentifier(schema)
  const qualified = outboxTable.includes('.') ? named : `${home}.${named}`
  const wake = `${home}.outboxd_wake`
  const files = ['outbox.sql', wakes ? 'outbox_wake.sql' : 'outbox_no_wake.sql']
  const texts = await Promise.all(files.map((file) => readFile(join(migrationsDir, file), 'utf8')))
  const names: Record<string, string> = {
    table: qualified,
    trigger,
    index,
    tableName: pg.escapeLiteral(qualified),
    indexName: pg.escapeLiteral(index),
    wake,
    wakeName: pg.escapeLiteral(wake),
  }
  return texts.join(';').replaceAll(/(?<!:):(\w+)/g, (whole, name) => names[name] ?? whole)
}

/** Everybody who comes after a change of a table that waits for a lock waits behind it. */
const lockMaxSeconds = 10

/**
 * Runs `work` on a connection on which a statement may take as long as it needs, but does not wait long for others.
 *
 * @throws DatabaseUnusable that says what is in the way
 */
function impatiently<T>(variable: string, url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  return withDatabase(variable, url, async () => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
    client.on('error', () => {}) // the statement that runs says so
    try {
      await client.connect()
      // Through a pooler, where nothing is migrated, the session is not ours to change.
      if (await takeOwnSettings(client)) {
        const limits = {
          statement_timeout: '0',
          idle_in_transaction_session_timeout: '0',
          lock_timeout: `${lockMaxSeconds}s`,
        }
        await client.query('select set_config(key, value, false) from json_each_text($1)', [
          JSON.stringify({ ...ownSettings, ...asText, ...limits, ...(variable === 'STATE_DATABASE_URL' && ownNames) }),
        ])
      }
      await assertEncoding(client, variable, url)
      return await work(client)
    } catch (error) {
      if (!waitedForLock(error)) throw error
      const why = `another session has held a lock that is needed for ${lockMaxSeconds} s. Nothing was changed by the step that waited: end that session (select pid, application_name, query from pg_stat_activity where xact_start < now() - interval '10 s' finds it), and run it again`
      throw new DatabaseUnusable(variable, url, why, error)
    } finally {
      await client.end()
    }
  })
}
