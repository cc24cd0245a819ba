import { type Database, quoteIdentifier } from '../../postgres/database.ts'
import { baseTypeJoinSql } from '../columns.ts'

export interface CatalogColumn {
  readonly name: string
  /** The base type without a length: character varying, numeric, or the name of an enum. */
  readonly type: string
  /** As in character varying(20). */
  readonly exactType: string
  readonly notNull: boolean
  readonly isGenerated: boolean
  /** SQL, such as 'new'::text. */
  readonly default: string | null
  /**
   * The values that an enum or a CHECK allows, or else the few that rows have. Empty if none are known, null if rows
   * have many.
   */
  readonly knownValues: readonly string[] | null
  /** True if an enum or a CHECK allows only certain values. */
  readonly isClosed: boolean
  /** True if a unique index without a condition has only this column. */
  readonly isUnique: boolean
  readonly isReadable: boolean
}

export interface CatalogTable {
  readonly schema: string
  readonly name: string
  /** pg_class.relkind: r table, p partitioned, v view, m materialized view, f foreign table. */
  readonly kind: string
  readonly hasHeirs: boolean
  readonly primaryKey: readonly string[]
  readonly columns: readonly CatalogColumn[]
}

export const isTimeColumn = ({ type }: CatalogColumn) => /^(timestamp with(out)? time zone|date)$/.test(type)
export const isIntegerOrNumericColumn = ({ type }: CatalogColumn) => /^(smallint|integer|bigint|numeric)$/.test(type)
export const isTextColumn = ({ type }: CatalogColumn) => /^(text|character varying|character|citext)$/.test(type)

type Named = Pick<CatalogTable, 'schema' | 'name'>

export const qualifiedTableSql = ({ schema, name }: Named) => [schema, name].map(quoteIdentifier).join('.')

export const quoteNameIfNeeded = (name: string): string =>
  /^[a-z_][a-z0-9_]*$/.test(name) && !reservedWords.has(name) ? name : quoteIdentifier(name)

export const quoteTableIfNeeded = ({ schema, name }: Named): string =>
  `${quoteNameIfNeeded(schema)}.${quoteNameIfNeeded(name)}`

/**
 * All reserved words, also those that may name a function or type.
 *
 * @see https://www.postgresql.org/docs/18/sql-keywords-appendix.html
 */
const reservedWords = new Set(
  `all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation column
  concurrently constraint create cross current_catalog current_date current_role current_schema current_time
  current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze from
  full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit localtime
  localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references returning right
  select session_user similar some symmetric system_user table tablesample then to trailing true union unique user using
  variadic verbose when where window with`.split(/\s+/),
)

/** @param qualifiedName quoted, with or without a schema */
export async function readCatalogTable(db: Database, qualifiedName: string): Promise<CatalogTable | null> {
  const { rows } = await db.query<Omit<CatalogTable, 'columns'>>(tableSql, [qualifiedName])
  const [table] = rows
  if (table === undefined) return null
  const { rows: columns } = await db.query<
    Omit<CatalogColumn, 'knownValues'> & { labels: string[] | null; checks: string[] | null }
  >(columnsSql, [qualifiedTableSql(table)])
  return {
    ...table,
    columns: columns.map(({ labels, checks, ...column }) => {
      const allowed = labels ?? valuesOfChecks(checks)
      return { ...column, knownValues: allowed ?? [], isClosed: allowed !== null }
    }),
  }
}

const tableSql = `
  select n.nspname as schema, c.relname as name, c.relkind as kind,
    exists (select from pg_inherits h where h.inhparent = c.oid) and c.relkind <> 'p' as "hasHeirs",
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
      and i.indnkeyatts = 1 and i.indkey[0] = a.attnum) as "isUnique"
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    ${baseTypeJoinSql}
  where a.attrelid = to_regclass($1)::oid and a.attnum > 0 and not a.attisdropped order by a.attnum`

/** Reads the values of a check such as `CHECK ((status = ANY (ARRAY['new'::text, 'sent'::text])))`. */
function valuesOfChecks(checks: readonly string[] | null): string[] | null {
  const list = checks?.find((check) => /= ANY \(+ARRAY\[/.test(check))
  if (list === undefined) return null
  return [...list.matchAll(/'((?:[^']|'')*)'/g)].map(([, value = '']) => value.replaceAll("''", "'"))
}

/** A column with more different values has no list of known values. */
const wordsMax = 12
const rowsLookedAt = 2_000

export async function addKnownValuesFromRows(db: Database, table: CatalogTable): Promise<CatalogTable> {
  const asked = table.columns.filter((each) => isTextColumn(each) && !each.isClosed && each.isReadable)
  if (asked.length === 0) return table
  // Does not read long values, because they are not states or types, and Postgres stores them elsewhere.
  const texts = asked.map(({ name }, i) => {
    const column = quoteIdentifier(name)
    return `case when pg_column_size(${column}) <= 500 then ${column}::text end as w${i}`
  })
  const lists = asked.map(
    (_, i) => `(array_agg(distinct w${i}) filter (where length(w${i}) <= 100))[1:${wordsMax + 1}]::text[] as w${i}`,
  )
  const { rows } = await db.query<Record<string, string[] | null>>(
    `select ${lists.join(', ')} from (select ${texts.join(', ')} from ${qualifiedTableSql(table)} limit $1) looked_at`,
    [rowsLookedAt],
  )
  const found = new Map(asked.map(({ name }, i) => [name, rows[0]?.[`w${i}`] ?? []]))
  const wordsOf = (name: string, known: CatalogColumn['knownValues']) => {
    const words = found.get(name) ?? known
    return words !== null && words.length > wordsMax ? null : words
  }
  return {
    ...table,
    columns: table.columns.map((each) =>
      each.isClosed ? each : { ...each, knownValues: wordsOf(each.name, each.knownValues) },
    ),
  }
}

const payloadsLookedAt = 20

/** Reads some payloads for their keys. Values are never printed. */
export async function readSamplePayloads(db: Database, table: CatalogTable, column: string): Promise<string[]> {
  const name = quoteIdentifier(column)
  const { rows } = await db.query<{ payload: string }>(
    `select ${name}::text as payload from ${qualifiedTableSql(table)}
     where ${name} is not null and octet_length(${name}::text) < 100000 limit $1`,
    [payloadsLookedAt],
  )
  return rows.map(({ payload }) => payload)
}
