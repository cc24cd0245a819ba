import { baseTypeJoinSql } from '../outbox/columns.ts'
import { findSchemaPermissionProblem } from '../outbox/outboxGrants.ts'
import { type OutboxTable, qualifiedNameSql } from '../outbox/outboxTable.ts'
import { addTableSchemaIfFound, findTableOfSimilarName } from '../outbox/readTableShape.ts'
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
  readonly schemaSql: string
  /** pg_class.relkind: r table, p partitioned, v view, m materialized view, f foreign table. */
  readonly kind: string
  /** True if other tables inherit from it: its indexes do not cover their rows. */
  readonly hasHeirs: boolean
  readonly primaryKey: readonly string[]
  readonly columns: readonly CatalogColumn[]
}

/** Says why nothing is proposed. `isMissing`: our user sees no such table. */
export class DescribeRefused extends Error {
  override name = 'DescribeRefused'
  readonly isMissing: boolean
  constructor(message: string, { isMissing = false } = {}) {
    super(message)
    this.isMissing = isMissing
  }
}

export type TableName = Pick<OutboxTable, 'schema' | 'table'>

/** A name as in the catalog, in quotes if it has a dot, a bracket or a comma. */
export const nameForm = String.raw`(?:\s*"(?:[^"]|"")+"\s*|[^".,()]+)`

/** Reads TABLE or SCHEMA.TABLE, which a user has typed. Null if it is neither. */
export function parseTableName(text: string): TableName | null {
  const found = new RegExp(`^(?:(${nameForm})\\.)?(${nameForm})$`).exec(text.trim())
  if (found === null) return null
  const [, schema, table = ''] = found
  return { schema: schema === undefined ? null : parseName(schema), table: parseName(table) }
}

export function parseName(text: string): string {
  const name = text.trim()
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name
}

/** @throws DescribeRefused */
export async function readTable(db: Database, named: TableName): Promise<CatalogTable> {
  const name = await addTableSchemaIfFound(db, named)
  const denied = await findSchemaPermissionProblem(db, name)
  if (denied !== null) throw new DescribeRefused(denied)
  const table = await readCatalogTable(db, qualifiedNameSql(name))
  if (table === null) {
    const nearest = await findTableOfSimilarName(db, name)
    const hint = nearest === null ? '' : `; did you mean "${nearest}"?`
    const { schema, table } = name
    throw new DescribeRefused(
      `there is no table ${schema === null ? '' : `${schema}.`}${table} in the outbox's database, or this user has no permission to see it${hint}`,
      { isMissing: true },
    )
  }
  if (table.kind !== 'r' && table.kind !== 'p')
    throw new DescribeRefused(
      `${table.sql} is not a table: describe the table below it. docs/start/outbox.md says what a view needs`,
    )
  return table
}

/** @param sql the table's name, quoted, with its schema */
export async function readCatalogTable(db: Database, sql: string): Promise<CatalogTable | null> {
  const { rows } = await db.query<Omit<CatalogTable, 'columns'>>(tableSql, [sql])
  const [table] = rows
  if (table === undefined) return null
  const { rows: columns } = await db.query<CatalogColumn>(columnsSql, [table.sql])
  return { ...table, columns }
}

const tableSql = `
  select n.nspname as schema, c.relname as name, format('%I.%I', n.nspname, c.relname) as sql, quote_ident(n.nspname) as "schemaSql",
    c.relkind as kind,
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
  const samples = readable.map((each) => {
    const { sql } = each
    const objects = isText(each) ? `count(*) filter (where left(${sql}, 1) = '{')` : '0'
    // A long value is not read: it is no status, and Postgres stores it elsewhere.
    return `json_build_object('rows', count(*), 'filled', count(${sql}), 'objects', ${objects},
      'different', count(distinct case when pg_column_size(${sql}) <= 500 then ${sql}::text end))`
  })
  const { rows } = await db.query<{ samples: ColumnSample[] }>(
    `select array[${samples.join(', ')}] as samples
     from (select ${readable.map(({ sql }) => sql).join(', ')} from ${table.sql} limit $1) part`,
    [rowsReadMax],
  )
  const columns = table.columns.map((each) => ({ ...each, sample: rows[0]?.samples[readable.indexOf(each)] ?? null }))
  return { ...table, columns }
}

export type ColumnKind = 'text' | 'number' | 'time' | 'uuid' | 'array' | 'other'

export function kindOfColumn({ type }: CatalogColumn): ColumnKind {
  if (/^(smallint|integer|bigint|numeric)$/.test(type)) return 'number'
  if (/^(text|character varying|character|citext)$/.test(type)) return 'text'
  if (/^(timestamp with(out)? time zone|date)$/.test(type)) return 'time'
  if (type.endsWith('[]')) return 'array'
  return type === 'uuid' ? 'uuid' : 'other'
}

export const isTime = (column: CatalogColumn) => kindOfColumn(column) === 'time'
export const isText = (column: CatalogColumn) => kindOfColumn(column) === 'text'
export const isInteger = ({ type }: CatalogColumn) => /^(smallint|integer|bigint)$/.test(type)

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

/** True for a column by which a condition may choose the rows to send. */
export const mayChooseRows = (column: CatalogColumn): boolean =>
  column.type === 'boolean' || (isTime(column) && !column.notNull) || mayBeStatus(column)

/** The type of a column, and what is known of its values. */
export function describeColumn(column: CatalogColumn): string {
  const { exactType, type, notNull, allowed, refersTo, isReadable, sample } = column
  const facts = [
    exactType,
    /^(real|double precision|money)$/.test(type) ? 'not exact' : null,
    type === 'character' ? 'add trim: true' : null,
    type === 'boolean' && !notNull ? 'may be NULL' : null,
    allowed === null ? null : allowed.map((value) => quoteLiteral(value)).join(' | '),
    refersTo === null ? null : `an id of ${refersTo}`,
    isReadable ? null : 'no permission to read it',
    sample !== null && sample.rows > 0 && sample.filled === 0 ? 'NULL in each row read' : null,
  ]
  return facts.filter((fact) => fact !== null).join(', ')
}

export const labelColumns = (columns: readonly CatalogColumn[]): string[] =>
  columns.map((column) => `${column.name} (${describeColumn(column)})`)
