import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { migrationsDir } from '../ledger/migrations.ts'
import { type Database, queryOne, quoteIdentifier } from '../postgres/database.ts'
import { inMigrationSession } from '../postgres/migrationSession.ts'
import { qualifiedNameSql, splitTableName } from './outboxTable.ts'
import { addTableSchemaIfFound } from './readTableShape.ts'

interface OutboxMigration {
  hasWakeTrigger: boolean
  /** If above 0, the ERP may use two-phase commit, which fails with a NOTIFY. */
  preparedMax: number
}

/**
 * Creates the table of migrations/outbox.sql if it is missing, and creates or renews its trigger.
 * @param outboxTable name, or schema.name
 * @param wake true for a trigger that wakes the daemon; null adds it only if no transaction can be prepared
 */
export async function migrateOutbox(
  databaseUrl: string,
  outboxTable: string,
  wake: boolean | null = null,
): Promise<OutboxMigration> {
  return inMigrationSession(databaseUrl, 'role', async (client) => {
    const schema = await readCreationSchema(client)
    const { preparedMax } = await queryOne<{ preparedMax: number }>(
      client,
      `select pg_catalog.current_setting('max_prepared_transactions')::pg_catalog.int4 as "preparedMax"`,
    )
    const hasWakeTrigger = wake ?? preparedMax === 0
    // One string of statements is one transaction. The lock makes a second command wait.
    await client.query(
      `begin;
       set local search_path = pg_catalog, pg_temp;
       select pg_advisory_xact_lock(hashtext('outboxd migrate --outbox'));
       ${await outboxStatements(outboxTable, schema, hasWakeTrigger)}; commit`,
    )
    return { hasWakeTrigger, preparedMax }
  })
}

async function readCreationSchema(client: pg.Client): Promise<string> {
  const { schema } = await queryOne<{ schema: string | null }>(client, 'select pg_catalog.current_schema() as schema')
  if (schema === null) throw new Error('the search path of this role has no schema in which to create the outbox table')
  return schema
}

async function outboxStatements(outboxTable: string, schema: string, wakes: boolean): Promise<string> {
  const split = splitTableName(outboxTable)
  const named = qualifiedNameSql(split)
  const [index = '', captured = ''] = indexNames(split).map(quoteIdentifier)
  const home = quoteIdentifier(schema)
  const qualified = outboxTable.includes('.') ? named : `${home}.${named}`
  const wake = `${home}.outboxd_wake`
  const files = ['outbox.sql', wakes ? 'outbox_wake.sql' : 'outbox_no_wake.sql']
  const texts = await Promise.all(files.map((file) => readFile(join(migrationsDir, file), 'utf8')))
  const names: Record<string, string> = {
    table: qualified,
    trigger: quoteIdentifier(`${split.table}_wakes_outboxd`),
    index,
    captured,
    capturedName: pg.escapeLiteral(captured),
    tableName: pg.escapeLiteral(qualified),
    indexName: pg.escapeLiteral(index),
    wake,
    wakeName: pg.escapeLiteral(wake),
  }
  return texts.join(';').replaceAll(/(?<!:):(\w+)/g, (whole, name) => names[name] ?? whole)
}

/** The indexes of migrations/outbox.sql: that of waiting rows, and that of captured documents. */
const indexNames = ({ table }: { table: string }): string[] => [`${table}_new`, `${table}_captured`]

/** The columns of migrations/outbox.sql. */
export const ourColumns = [
  ...['id', 'type', 'key', 'payload', 'created_at'],
  ...['status', 'transaction_id', 'error_code', 'error', 'updated_at'],
]

/** Returns why `migrate --outbox` leaves a table alone; null if the table is missing or its columns are ours. */
export function findForeignTableClause(table: string, { columns }: Pick<OutboxTableState, 'columns'>): string | null {
  const foreign = columns.filter((column) => !ourColumns.includes(column))
  const missing = columns.length === 0 ? [] : ourColumns.filter((column) => !columns.includes(column))
  if (foreign.length + missing.length === 0) return null
  const why = foreign.length > 0 ? `it has ${foreign.join(', ')}` : `it lacks ${missing.join(', ')}`
  return `the table ${table} is there and was not made by outboxd (${why}), so --outbox does not change it. Describe it in outbox.yaml: outboxd describe ${table} --write. Or name a new table in OUTBOX_TABLE`
}

export interface OutboxTableState {
  exists: boolean
  /** False if the trigger is missing or disabled. */
  hasWakeTrigger: boolean
  preparedMax: number
  columns: string[]
  missingIndexes: string[]
}

/** @param table name, or schema.name */
export async function inspectOutboxTable(db: Database, table: string): Promise<OutboxTableState> {
  const split = splitTableName(table)
  return queryOne<OutboxTableState>(
    db,
    `with t as (select to_regclass($1)::oid as id)
     select id is not null as exists,
       exists (select from pg_trigger g join pg_proc p on p.oid = g.tgfoid
         where g.tgrelid = t.id and p.proname = 'outboxd_wake' and g.tgenabled <> 'D') as "hasWakeTrigger",
       current_setting('max_prepared_transactions')::int as "preparedMax",
       array(select attname::text from pg_attribute where attrelid = t.id and attnum > 0 and not attisdropped
         order by attnum) as columns,
       array(select name::text from unnest($2::name[]) name where not exists (
         select from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = t.id and c.relname = name
       )) as "missingIndexes"
     from t`,
    [qualifiedNameSql(await addTableSchemaIfFound(db, split)), indexNames(split)],
  )
}
