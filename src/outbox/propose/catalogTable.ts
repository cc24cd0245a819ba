import { type Database, quoteIdentifier } from '../../postgres/database.ts'
import { baseTypeJoinSql } from '../columns.ts'
import { findTablesOfView } from '../findTableProblems.ts'

export interface CatalogColumn {
  readonly name: string
  /** The base type, without a length: character varying, numeric, or the name of an enum. */
  readonly type: string
  /** As in character varying(20). */
  readonly exactType: string
  readonly notNull: boolean
  readonly isGenerated: boolean
  /** SQL, as in 'new'::text. */
  readonly default: string | null
  /** The values that an enum or a CHECK allows; null if there is neither. */
  readonly allowed: readonly string[] | null
  /** True if it has a unique index of its own, without a condition. */
  readonly isUnique: boolean
  /** True if its default is a sequence that counts up without a cache. */
  readonly isDrawn: boolean
  readonly isReadable: boolean
}

export interface CatalogTable {
  readonly schema: string
  readonly name: string
  /** pg_class.relkind: r table, p partitioned, v view, m materialized view, f foreign table. */
  readonly kind: string
  readonly hasHeirs: boolean
  /** The tables that a view reads, quoted; empty for a table. */
  readonly below: readonly string[]
  /** False for a view that does not allow updates. */
  readonly isUpdatable: boolean
  readonly primaryKey: readonly string[]
  readonly columns: readonly CatalogColumn[]
}

export function qualifiedTable({ schema, name }: Pick<CatalogTable, 'schema' | 'name'>): string {
  return [schema, name].map(quoteIdentifier).join('.')
}

/** @param qualified quoted, with or without a schema */
export async function readCatalogTable(db: Database, qualified: string): Promise<CatalogTable | null> {
  const { rows } = await db.query<Omit<CatalogTable, 'columns' | 'below'>>(tableSql, [qualified])
  const [table] = rows
  if (table === undefined) return null
  const { rows: columns } = await db.query<CatalogColumn & { labels: string[] | null; checks: string[] | null }>(
    columnsSql,
    [qualifiedTable(table)],
  )
  return {
    ...table,
    below: /^[vm]$/.test(table.kind) ? await findTablesOfView(db, qualifiedTable(table)) : [],
    columns: columns.map(({ labels, checks, ...column }) => ({ ...column, allowed: labels ?? valuesOfChecks(checks) })),
  }
}

const tableSql = `
  select n.nspname as schema, c.relname as name, c.relkind as kind,
    exists (select from pg_inherits h where h.inhparent = c.oid) and c.relkind <> 'p' as "hasHeirs",
    pg_relation_is_updatable(c.oid, false) & 4 = 4 as "isUpdatable",
    coalesce((select json_agg(a.attname order by k.place)
      from pg_index i cross join unnest(i.indkey) with ordinality k (number, place)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number
      where i.indrelid = c.oid and i.indisprimary), '[]') as "primaryKey"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.oid = to_regclass($1)::oid and c.relkind in ('r', 'p', 'v', 'm', 'f')`

const columnsSql = `
  select a.attname as name, format_type(base.type, null) as type, format_type(a.atttypid, a.atttypmod) as "exactType",
    a.attnotnull as "notNull", a.attgenerated <> '' as "isGenerated", pg_get_expr(d.adbin, d.adrelid) as default,
    has_column_privilege(a.attrelid, a.attnum, 'select') as "isReadable",
    (select json_agg(enumlabel order by enumsortorder) from pg_enum where enumtypid = base.type) as labels,
    (select json_agg(pg_get_constraintdef(k.oid)) from pg_constraint k
      where k.conrelid = a.attrelid and k.contype = 'c' and k.conkey = array[a.attnum]) as checks,
    exists (select from pg_index i where i.indrelid = a.attrelid and i.indisunique and i.indisvalid and i.indpred is null
      and i.indnkeyatts = 1 and i.indkey[0] = a.attnum) as "isUnique",
    exists (select from pg_sequence s where s.seqincrement > 0 and s.seqcache = 1
      and s.seqrelid = pg_get_serial_sequence($1, a.attname)::regclass::oid) as "isDrawn"
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    ${baseTypeJoinSql}
  where a.attrelid = to_regclass($1)::oid and a.attnum > 0 and not a.attisdropped order by a.attnum`

/** Reads the values of a check such as `CHECK ((status = ANY (ARRAY['new'::text, 'sent'::text])))`. */
function valuesOfChecks(checks: readonly string[] | null): string[] | null {
  const list = checks?.find((check) => /= ANY \(+ARRAY\[/.test(check))
  if (list === undefined) return null
  return [...list.matchAll(/'((?:[^']|'')*)'/g)].map(([, value = '']) => value.replaceAll("''", "'"))
}

/** A column with more values is not a list of words. */
export const distinctValuesMax = 12
const rowsLookedAt = 10_000

/** Reads the few values of a column in some thousand rows; null if there are many. */
export async function readDistinctValues(db: Database, table: CatalogTable, column: string): Promise<string[] | null> {
  const name = quoteIdentifier(column)
  const { rows } = await db.query<{ word: string }>(
    // A long value is not a word. Postgres stores it elsewhere, and it is not read.
    `select distinct word from (
       select case when pg_column_size(${name}) <= 500 then ${name}::text end as word from ${qualifiedTable(table)} limit $1) looked_at
     where word is not null and length(word) <= 100 order by word limit $2`,
    [rowsLookedAt, distinctValuesMax + 1],
  )
  return rows.length > distinctValuesMax ? null : rows.map(({ word }) => word)
}

const payloadsLookedAt = 20

/** Reads some payloads for their keys. Values are never printed. */
export async function readSamplePayloads(db: Database, table: CatalogTable, column: string): Promise<string[]> {
  const name = quoteIdentifier(column)
  const { rows } = await db.query<{ payload: string }>(
    `select ${name}::text as payload from ${qualifiedTable(table)}
     where ${name} is not null and octet_length(${name}::text) < 100000 limit $1`,
    [payloadsLookedAt],
  )
  return rows.map(({ payload }) => payload)
}
