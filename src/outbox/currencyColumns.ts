import { type Database, queryOne } from '../postgres/database.ts'

const rowsReadMax = 1_000

/**
 * Finds the columns of a table that say a row's currency: texts that are codes of ISO 4217 in each row read, and foreign
 * keys to a table that has such a text. Decides by values, never by names.
 *
 * @param tableSql the table's name, quoted
 */
export async function findCurrencyColumns(db: Database, tableSql: string): Promise<string[]> {
  const { rows: texts } = await db.query<CodeColumn>(textColumnsSql, [tableSql])
  const found: string[] = []
  for (const [table, columns] of Map.groupBy(texts, ({ table }) => table)) {
    const counts = columns.map(({ code }) => `count(${code}) > 0 and bool_and(${code}::text = any($1)) is not false`)
    const { hasCodes } = await queryOne<{ hasCodes: boolean[] }>(
      db,
      `select array[${counts.join(', ')}] as "hasCodes" from (select * from ${table} limit $2) part`,
      [codes, rowsReadMax],
    )
    for (const [i, { column }] of columns.entries()) if (hasCodes[i]) found.push(column)
  }
  return [...new Set(found)]
}

const codes = Intl.supportedValuesOf('currency')

export const isCurrencyCode = (text: string): boolean => codes.includes(text)

interface CodeColumn {
  /** The table's own column: the text itself, or the foreign key. */
  readonly column: string
  /** The table with the text, quoted. */
  readonly table: string
  /** The text, quoted. */
  readonly code: string
}

/** Texts of the table, and of tables to which a foreign key of one column leads, if our role may read them. */
const textColumnsSql = `
  with source as (
    select null::name as by, to_regclass($1)::oid as id
    union all
    select a.attname, k.confrelid from pg_constraint k
      join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
    where k.conrelid = to_regclass($1)::oid and k.contype = 'f' and cardinality(k.conkey) = 1
      and k.confrelid <> k.conrelid
  )
  select coalesce(s.by, a.attname) as column, format('%I.%I', n.nspname, c.relname) as table, quote_ident(a.attname) as code
  from source s join pg_class c on c.oid = s.id join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid and t.typcategory in ('S', 'E')
  where has_table_privilege(c.oid, 'select') and has_schema_privilege(n.oid, 'usage')
  order by s.by nulls first, a.attnum`
