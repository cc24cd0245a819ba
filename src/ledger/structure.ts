import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Database, DatabaseUnusable } from '../postgres/database.ts'
import { migrationsDir } from './migrations.ts'

/** A constraint, an index or a trigger of the ledger. */
export interface SchemaPart {
  /** Such as `constraint clock_pkey of clock`. */
  name: string
  /** The statement that makes the part. */
  sql: string
  /** True if only speed is lost without the part. */
  isForSpeed: boolean
}

interface FoundSchemaPart extends SchemaPart {
  /** SQL that makes an invalid or disabled part valid; null if it is valid. */
  mendedBy: string | null
}

/**
 * Reads the parts in the order in which they can be made. Leaves out NOT NULL, which is not a constraint on older
 * servers.
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

export async function findMissingSchemaParts(db: Database): Promise<SchemaPart[]> {
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
 * Finds sequences that are behind, because logical replication copies rows but leaves sequences. Compares the two logs
 * only, because no index starts with a submission's number.
 */
export async function findSequencesBehindLogs(db: Database): Promise<SchemaPart[]> {
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
  const parts = [...(await findMissingSchemaParts(db)), ...(await findSequencesBehindLogs(db))]
  const missing = parts.filter(({ isForSpeed }) => !isForSpeed)
  if (missing.length === 0) return
  const named = missing
    .slice(0, 3)
    .map(({ name }) => name)
    .join(', ')
  const more = missing.length > 3 ? ` and ${missing.length - 3} more` : ''
  const why = `its schema outboxd lacks ${named}${more}. It was restored in part, or a part was dropped. \`outboxd check\` prints the statements that make it again`
  throw new DatabaseUnusable('STATE_DATABASE_URL', stateDatabaseUrl, why)
}
