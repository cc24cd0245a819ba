import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import type { MigrationCost, TableCost } from '../../src/ledger/migrations.ts'
import { checkout } from './program.ts'

const folder = join(checkout, 'migrations')

/** Names of the ledger's migrations, the oldest first. */
export const migrationNames = readdirSync(folder)
  .filter((file) => /^\d{4}_.*\.sql$/.test(file))
  .map((file) => file.slice(0, -4))
  .sort()

export const migrationText = (name: string): string => readFileSync(join(folder, `${name}.sql`), 'utf8')

/**
 * Applies a migration in its own transaction, as `migrate` does, and reads before the COMMIT what it has done: which
 * locks it holds on earlier tables, how often it has read each of them, and what it has added and dropped.
 */
export async function measureMigration(client: pg.ClientBase, name: string): Promise<MigrationCost> {
  await client.query('begin')
  const [objects, tables] = [await readObjects(client), await readTables(client)]
  await client.query(migrationText(name))
  const [objectsNow, tablesNow] = [await readObjects(client), await readTables(client)]
  const locks = await readLocks(client)
  await client.query('commit')
  const isOfBefore = (object: string) => !tablesNow.some(({ table }) => isPartOf(object, table) && !has(tables, table))
  const costs = tables.flatMap((before): TableCost[] => {
    const now = tablesNow.find(({ table }) => table === before.table)
    const lock = locks.find(({ table }) => table === before.table)?.lock
    if (now === undefined || lock === undefined) return []
    if (lock === 'AccessShareLock' && now.reads === before.reads) return []
    return [
      {
        table: before.table,
        lock,
        reads: now.reads - before.reads,
        indexes: now.indexes.filter((index) => !before.indexes.includes(index)).length,
        isRewritten: now.file !== before.file,
      },
    ]
  })
  return {
    name,
    adds: objectsNow.filter((object) => !objects.includes(object)).filter(isOfBefore),
    drops: objects.filter((object) => !objectsNow.includes(object)),
    tables: costs,
  }
}

const has = (tables: readonly TableState[], name: string) => tables.some(({ table }) => table === name)
/** True for the columns, indexes and checks of this table. */
const isPartOf = (object: string, table: string) => object.endsWith(` of ${table}`)

interface TableState {
  table: string
  file: string
  indexes: string[]
  reads: number
}

async function readTables(client: pg.ClientBase): Promise<TableState[]> {
  const { rows } = await client.query<TableState>(
    `select c.relname as table, pg_relation_filenode(c.oid)::text as file, s.seq_scan::int as reads,
       array(select indexrelid::text from pg_index where indrelid = c.oid) as indexes
     from pg_class c join pg_stat_xact_all_tables s on s.relid = c.oid
     where c.relnamespace = 'outboxd'::regnamespace and c.relkind = 'r' order by c.relname`,
  )
  return rows
}

/** Reads the strongest lock that this transaction holds on each table. */
async function readLocks(client: pg.ClientBase): Promise<{ table: string; lock: TableCost['lock'] }[]> {
  const { rows } = await client.query<{ table: string; lock: TableCost['lock'] }>(
    `select distinct on (c.relname) c.relname as table, l.mode as lock
     from pg_locks l join pg_class c on c.oid = l.relation and c.relnamespace = 'outboxd'::regnamespace and c.relkind = 'r'
     where l.pid = pg_backend_pid()
     order by c.relname, array_position(array['AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock', 'ShareLock',
       'ShareUpdateExclusiveLock', 'RowExclusiveLock', 'RowShareLock', 'AccessShareLock'], l.mode)`,
  )
  return rows
}

/** Reads descriptions of all objects in our schema. */
async function readObjects(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ object: string }>(
    `select case relkind when 'r' then 'table ' else 'view ' end || relname as object
     from pg_class where relnamespace = 'outboxd'::regnamespace and relkind in ('r', 'v')
     union all select 'column ' || attname || ' of ' || relname
     from pg_attribute a join pg_class c on c.oid = attrelid
     where relnamespace = 'outboxd'::regnamespace and relkind = 'r' and attnum > 0 and not attisdropped
     union all select 'index ' || i.relname || ' of ' || t.relname
     from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
     where t.relnamespace = 'outboxd'::regnamespace
     union all select case contype when 'c' then 'check ' else 'foreign key ' end || conname || ' of ' || relname
     from pg_constraint k join pg_class c on c.oid = conrelid
     where relnamespace = 'outboxd'::regnamespace and contype in ('c', 'f')
     union all select 'trigger ' || tgname || ' of ' || relname
     from pg_trigger g join pg_class c on c.oid = tgrelid
     where relnamespace = 'outboxd'::regnamespace and not tgisinternal
     union all select 'function ' || proname from pg_proc where pronamespace = 'outboxd'::regnamespace
     union all select 'statistics ' || stxname || ' of ' || relname
     from pg_statistic_ext join pg_class c on c.oid = stxrelid where stxnamespace = 'outboxd'::regnamespace
     order by 1`,
  )
  return rows.map(({ object }) => object)
}
