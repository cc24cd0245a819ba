import { baseTypeJoinSql } from '../outbox/columns.ts'
import { type Database, quoteLiteral } from '../postgres/database.ts'

export interface CatalogColumn {
  readonly name: string
  /** The name in SQL, quoted if it must be. */
  readonly sql: string
  /** False if the collation takes different texts for equal. */
  readonly isDeterministic: boolean
  /** The base type without a length: character varying, numeric, or the name of an enum. */
  readonly type: string
  /** As in character varying(20). */
  readonly exactType: string
  readonly notNull: boolean
  /** SQL, such as now(). */
  readonly default: string | null
  /** The values that an enum or a CHECK allows; null if neither says. */
  readonly allowed: readonly string[] | null
  /** True if a unique index without a condition has only this column. */
  readonly isUnique: boolean
  readonly isReadable: boolean
  /** The quoted table to which a foreign key of the column leads; null if none does. */
  readonly refersTo: string | null
  /** Null if the column was not read. */
  readonly sample: ColumnSample | null
}

/** Counts of the rows that were read. Their values are never kept. */
interface ColumnSample {
  readonly rows: number
  readonly filled: number
  /** Different values, without those above 500 bytes. */
  readonly different: number
  /** Texts that begin like a JSON object. */
  readonly objects: number
}

export interface CatalogTable {
  readonly schema: string
  readonly name: string
  /** The name in SQL with its schema, quoted where it must be. */
  readonly sql: string
  /** pg_class.relkind: r table, p partitioned, v view, m materialized view, f foreign table. */
  readonly kind: string
  readonly hasHeirs: boolean
  readonly primaryKey: readonly string[]
  readonly columns: readonly CatalogColumn[]
}

export const isTime = ({ type }: CatalogColumn) => /^(timestamp with(out)? time zone|date)$/.test(type)
export const isInteger = ({ type }: CatalogColumn) => /^(smallint|integer|bigint)$/.test(type)
export const isText = ({ type }: CatalogColumn) => /^(text|character varying|character|citext)$/.test(type)

/** True for a column that may have a JSON document: by its type, or because its texts begin like one. */
export const mayHoldJson = ({ type, sample }: CatalogColumn): boolean =>
  /^(jsonb?|bytea)$/.test(type) || (sample !== null && sample.objects > 0 && sample.objects === sample.filled)

const fewMax = 12
const rowsJudgedMin = 50

/** True for a column that may sort rows into groups, such as a status. */
export function mayBeStatus(column: CatalogColumn): boolean {
  const { allowed, sample, isUnique, refersTo } = column
  if (allowed !== null) return true
  if (isUnique || refersTo !== null || !(isText(column) || isInteger(column))) return false
  if (sample === null || sample.rows < rowsJudgedMin) return true
  return sample.different <= fewMax
}

/** @param sql the table's name, quoted, with or without a schema */
export async function readCatalogTable(db: Database, sql: string): Promise<CatalogTable | null> {
  const { rows } = await db.query<Omit<CatalogTable, 'columns'>>(tableSql, [sql])
  const [table] = rows
  if (table === undefined) return null
  const { rows: columns } = await db.query<CatalogColumn>(columnsSql, [table.sql])
  return { ...table, columns }
}

const tableSql = `
  select n.nspname as schema, c.relname as name, format('%I.%I', n.nspname, c.relname) as sql, c.relkind as kind,
    exists (select from pg_inherits h where h.inhparent = c.oid) and c.relkind <> 'p' as "hasHeirs",
    coalesce((select json_agg(a.attname order by k.place)
      from pg_index i cross join unnest(i.indkey) with ordinality k (number, place)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number
      where i.indrelid = c.oid and i.indisprimary), '[]') as "primaryKey"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.oid = to_regclass($1)::oid and c.relkind in ('r', 'p', 'v', 'm', 'f')`

/** A check that allows certain values reads `CHECK ((status = ANY (ARRAY['new'::text, 'sent'::text])))`. */
const columnsSql = `
  select a.attname as name, quote_ident(a.attname) as sql, format_type(base.type, null) as type,
    format_type(a.atttypid, a.atttypmod) as "exactType", a.attnotnull as "notNull",
    coalesce((select collisdeterministic from pg_collation l where l.oid = a.attcollation), true) as "isDeterministic", pg_get_expr(d.adbin, d.adrelid) as default,
    has_column_privilege(a.attrelid, a.attnum, 'select') as "isReadable",
    (select min(format('%I.%I', n.nspname, c.relname)) from pg_constraint k join pg_class c on c.oid = k.confrelid
      join pg_namespace n on n.oid = c.relnamespace
      where k.conrelid = a.attrelid and k.contype = 'f' and a.attnum = any(k.conkey)) as "refersTo",
    coalesce((select json_agg(enumlabel order by enumsortorder) from pg_enum where enumtypid = base.type),
      (select json_agg(replace(value[1], '''''', '''')) from pg_constraint k,
          regexp_matches(pg_get_constraintdef(k.oid), '''((?:[^'']|'''')*)''', 'g') value
        where k.conrelid = a.attrelid and k.contype = 'c' and k.conkey = array[a.attnum]
          and pg_get_constraintdef(k.oid) like '%= ANY (%ARRAY[%')) as allowed,
    exists (select from pg_index i where i.indrelid = a.attrelid and i.indisunique and i.indisvalid and i.indpred is null
      and i.indnkeyatts = 1 and i.indkey[0] = a.attnum) as "isUnique", null::json as sample
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    ${baseTypeJoinSql}
  where a.attrelid = to_regclass($1)::oid and a.attnum > 0 and not a.attisdropped order by a.attnum`

const rowsReadMax = 2_000

/** Counts in some rows which columns are empty, and how many different values they have. */
export async function addSamples(db: Database, table: CatalogTable): Promise<CatalogTable> {
  const readable = table.columns.filter(({ isReadable }) => isReadable)
  if (readable.length === 0) return table
  const counts = readable.map((each) => {
    const { sql } = each
    const objects = isText(each) ? `count(*) filter (where left(${sql}, 1) = '{')` : '0'
    // A long value is not read: it is no status, and Postgres stores it elsewhere.
    return `json_build_array(count(${sql}), count(distinct case when pg_column_size(${sql}) <= 500 then ${sql}::text end), ${objects})`
  })
  const { rows } = await db.query<{ rows: number; counts: [number, number, number][] }>(
    `select count(*)::int as rows, array[${counts.join(', ')}] as counts
     from (select ${readable.map(({ sql }) => sql).join(', ')} from ${table.sql} limit $1) part`,
    [rowsReadMax],
  )
  const columns = table.columns.map((each) => {
    const [filled, different, objects] = rows[0]?.counts[readable.indexOf(each)] ?? []
    if (filled === undefined || different === undefined || objects === undefined) return each
    return { ...each, sample: { rows: rows[0]?.rows ?? 0, filled, different, objects } }
  })
  return { ...table, columns }
}

/** The type is null if rows do not show it. */
export type SamplePayloads = { readonly type: string | null; readonly payloads: readonly string[] }

const typesMax = 12
const payloadsMax = 20

/** Reads payloads, by type if the table has the columns of migrations/outbox.sql. Their values are never printed. */
export async function readSamplePayloads(
  db: Database,
  table: CatalogTable,
  { sql }: CatalogColumn,
  typeSql: 'type' | 'null',
): Promise<SamplePayloads[]> {
  const { rows } = await db.query<SamplePayloads>(
    `select type, (array_agg(payload))[1:$1] as payloads
     from (select ${typeSql}::text as type, ${sql}::text as payload from ${table.sql}
       where pg_column_size(${sql}) < 100000 limit $2) part
     group by type order by type limit $3`,
    [payloadsMax, rowsReadMax, typesMax],
  )
  return rows
}

/** Describes a column for a list of candidates: its type, and what is known of its values. */
export function describeCandidate({ name, exactType, type, allowed, refersTo, sample }: CatalogColumn): string {
  const facts = [
    exactType,
    /^(real|double precision|money)$/.test(type) ? 'not exact' : null,
    type === 'character' ? 'add trim: true' : null,
    allowed === null ? null : allowed.map((value) => quoteLiteral(value)).join(' | '),
    refersTo === null ? null : `an id of ${refersTo}`,
    sample !== null && sample.rows > 0 && sample.filled === 0 ? 'NULL in each row read' : null,
  ]
  return `${name} (${facts.filter((fact) => fact !== null).join(', ')})`
}

/** True for a column by which a condition may choose the rows to send. */
export const mayChooseRows = (column: CatalogColumn): boolean =>
  column.type === 'boolean' || (isTime(column) && !column.notNull) || mayBeStatus(column)

export const listOf = (columns: readonly CatalogColumn[]): string =>
  columns.length === 0 ? '' : `; one of: ${columns.map(describeCandidate).join(', ')}`
