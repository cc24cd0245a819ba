import type pg from 'pg'
import type { OutboxIdentity } from '../ledger/binding.ts'
import { type Database, queryOne, readSchemasInSearchPath, withSearchPathOfRole } from '../postgres/database.ts'
import { findEncodingRefusalClause, readServerEncoding } from '../postgres/serverEncoding.ts'
import { findNearestWord } from '../yaml/nearestWord.ts'
import { baseTypeJoinSql, type Column, type TableShape } from './columns.ts'
import { findDescriptionMismatchClauses } from './findTableProblems.ts'
import { type OutboxTable, qualifiedNameSql } from './outboxTable.ts'

export class OutboxTableUnusable extends Error {
  override name = 'OutboxTableUnusable'
}

/** @param clauses what is wrong, each to follow the table's name */
export function unusableTable(table: OutboxTable, clauses: readonly string[]): OutboxTableUnusable {
  const name = `${table.file ?? 'OUTBOX_TABLE'}: the table ${qualifiedNameSql(table)}`
  return new OutboxTableUnusable(clauses.map((clause) => `${name} ${clause}`).join('\n'))
}

/** Adds the schema in which the role's search path finds the table, if the table exists. */
export async function addTableSchemaIfFound<T extends Pick<OutboxTable, 'schema' | 'table'>>(
  db: Database,
  table: T,
): Promise<T> {
  if (table.schema !== null) return table
  // Every name is qualified, because the role's search path may have objects of the same names.
  const { rows } = await withSearchPathOfRole(db).query<{ schema: string }>(
    `select n.nspname as schema from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
     where c.oid operator(pg_catalog.=) pg_catalog.to_regclass($1)::pg_catalog.oid`,
    [qualifiedNameSql(table)],
  )
  return rows[0] === undefined ? table : { ...table, schema: rows[0].schema }
}

/**
 * Finds out whether statements on rows run the client's code: views, rules, policies, triggers of updates, or
 * functions, operators and types that are not built in.
 */
const clientCodeSql = `
  with recursive part as (
    select $1::regclass::oid as id union all select h.inhrelid from part join pg_inherits h on h.inhparent = part.id
  ), own as (
    select 'pg_class'::regclass::oid as class, id as object from part
    union all select 'pg_class'::regclass::oid, indexrelid from pg_index where indrelid in (select id from part)
    union all select 'pg_constraint'::regclass::oid, oid from pg_constraint where conrelid in (select id from part)
    union all select 'pg_attrdef'::regclass::oid, oid from pg_attrdef where adrelid in (select id from part)
  )
  select exists (select from pg_class where oid in (select id from part) and (relkind not in ('r', 'p') or relrowsecurity or relhasrules))
    or exists (
      select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
      where t.tgrelid in (select id from part) and not t.tgisinternal and t.tgtype::int & 16 = 16
        and not exists (select from unnest(p.proconfig) setting where setting like 'search_path=%')
    )
    or exists (
      select from pg_depend d
      where (d.classid, d.objid) in (select class, object from own)
        and d.refclassid in ('pg_proc'::regclass::oid, 'pg_operator'::regclass::oid, 'pg_type'::regclass::oid, 'pg_opclass'::regclass::oid)
    ) as "hasClientCode"`

export interface TableShapeAndIdentity {
  readonly shape: TableShape
  readonly identity: OutboxIdentity
}

/** @throws OutboxTableUnusable if the table cannot be read as described */
export async function readTableShapeAndIdentity(db: pg.Pool, named: OutboxTable): Promise<TableShapeAndIdentity> {
  const refusal = findEncodingRefusalClause(await readServerEncoding(db))
  if (refusal !== null) throw new OutboxTableUnusable(`the database of DATABASE_URL cannot be used: ${refusal}`)
  const table = await addTableSchemaIfFound(db, named)
  const qualified = qualifiedNameSql(table)
  // Uses the role's search path, so that types have the names that the client's statements use.
  const { rows } = await withSearchPathOfRole(db).query<Column & { name: string; kind: string }>(
    `select a.attname as name, c.relkind as kind, pg_catalog.format_type(base.type, -1) as type,
       pg_catalog.format_type(a.atttypid, a.atttypmod) as "exactType", a.attnotnull as "notNull",
       pg_catalog.format_type(base.type, null) as "baseType",
       coalesce((select pg_catalog.format(' collate %I.%I', n.nspname, l.collname) from pg_catalog.pg_collation l
         join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) l.collnamespace
         where l.oid operator(pg_catalog.=) a.attcollation), '') as "collateSql"
     from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid operator(pg_catalog.=) a.attrelid
       ${baseTypeJoinSql}
     where a.attrelid operator(pg_catalog.=) pg_catalog.to_regclass($1)::pg_catalog.oid and a.attnum operator(pg_catalog.>) 0 and not a.attisdropped
     order by a.attnum`,
    [qualified],
  )
  const described = table.file ?? 'OUTBOX_TABLE'
  if (rows.length === 0) {
    const nearest = await findTableOfSimilarName(db, table)
    const hints = [
      nearest === null ? null : `did you mean "${nearest}"?`,
      table.file === null ? 'create it with `outboxd migrate --outbox`, or describe yours in outbox.yaml' : null,
    ].filter((hint) => hint !== null)
    const missing = `there is no table ${qualifiedNameSql(named)} in the outbox's database, or this user has no permission to see it`
    throw new OutboxTableUnusable(`${described}: ${[missing, ...hints].join('; ')}`)
  }
  const columns = new Map(rows.map(({ name, kind: _, ...column }) => [name, column]))
  const problems = await findDescriptionMismatchClauses(db, { qualified, kind: rows[0]?.kind ?? '', table, columns })
  if (problems.length > 0) throw unusableTable(named, problems)
  const { hasClientCode } = await queryOne<{ hasClientCode: boolean }>(db, clientCodeSql, [qualified])
  const hasSystemColumns = rows.every(({ kind }) => /^[rp]$/.test(kind))
  return {
    shape: { qualified, columns, hasSystemColumns, hasCustomCode: table.filter !== null || hasClientCode },
    identity: { table: `${table.schema}.${table.table}`, idColumn: table.id },
  }
}

const tablesMax = 20_000

export async function findTableOfSimilarName(
  db: Database,
  { schema, table }: Pick<OutboxTable, 'schema' | 'table'>,
): Promise<string | null> {
  const { rows } = await db.query<{ name: string; written: string }>(
    `select c.relname as name, case when n.nspname = any($2) and $3::text is null then '' else n.nspname || '.' end || c.relname as written
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
       and n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'outboxd'::name, 'outboxd_jobs'::name, 'sandbox')
       and has_schema_privilege(n.oid, 'usage')
     order by n.nspname = coalesce($3, '') desc, n.nspname = any($2) desc, c.relname, n.nspname limit $1`,
    [tablesMax, await readSchemasInSearchPath(db), schema],
  )
  const names = rows.map(({ name }) => name)
  const near = names.includes(table) ? table : findNearestWord(table, names)
  return rows.find(({ name }) => name === near)?.written ?? null
}
