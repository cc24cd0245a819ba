import type { Database } from '../postgres/database.ts'
import { type CatalogTable, readCatalogTable } from './catalogTable.ts'

/** A table that is related to the described one. */
export interface RelatedTable {
  /** Quoted, with its schema. */
  readonly sql: string
  /** Quoted, in the order of `ownColumns`. Empty for a table that only has a similar name. */
  readonly columns: readonly string[]
  /** Those of the described table. */
  readonly ownColumns: readonly string[]
  /** True without a foreign key: the table's or a column's name resembles the described table's name or key. */
  readonly isGuess: boolean
  /** Null for all but the first tables. */
  readonly table: CatalogTable | null
}

export interface RelatedTables {
  /** Those to which the described table refers. */
  readonly above: readonly RelatedTable[]
  /** Those that refer to it, and the guesses. */
  readonly below: readonly RelatedTable[]
}

const tablesMax = 20

export async function readRelatedTables(db: Database, table: CatalogTable): Promise<RelatedTables> {
  async function addTables(related: readonly Omit<RelatedTable, 'table'>[]): Promise<RelatedTable[]> {
    const all: RelatedTable[] = []
    for (const each of related)
      all.push({ ...each, table: all.length < tablesMax ? await readCatalogTable(db, each.sql) : null })
    return all
  }
  const keys = await readForeignKeys(db, table)
  const above = keys
    .filter(({ from }) => from === table.sql)
    .map(({ to, columns, toColumns }) => ({ sql: to, columns: toColumns, ownColumns: columns, isGuess: false }))
  const below = keys
    .filter(({ from }) => from !== table.sql)
    .map(({ from, columns, toColumns }) => ({ sql: from, columns, ownColumns: toColumns, isGuess: false }))
  const known = new Set([table.sql, ...keys.flatMap(({ from, to }) => [from, to])])
  const guesses = await guessRelatedTables(db, table, known)
  return { above: await addTables(above), below: await addTables([...below, ...guesses]) }
}

/** Names are quoted where SQL needs it, and tables have their schemas. */
export interface ForeignKey {
  readonly from: string
  readonly columns: readonly string[]
  readonly to: string
  readonly toColumns: readonly string[]
}

/** Reads the foreign keys from and to a table. */
export async function readForeignKeys(db: Database, { sql }: Pick<CatalogTable, 'sql'>): Promise<ForeignKey[]> {
  return (await db.query<ForeignKey>(foreignKeysSql, [sql])).rows
}

/** Leaves out keys that Postgres copies for partitions. */
const foreignKeysSql = `
  select format('%I.%I', fs.nspname, f.relname) as "from", format('%I.%I', ts.nspname, t.relname) as "to",
    (select json_agg(quote_ident(a.attname) order by place) from unnest(k.conkey) with ordinality u (number, place)
      join pg_attribute a on a.attrelid = k.conrelid and a.attnum = number) as columns,
    (select json_agg(quote_ident(a.attname) order by place) from unnest(k.confkey) with ordinality u (number, place)
      join pg_attribute a on a.attrelid = k.confrelid and a.attnum = number) as "toColumns"
  from pg_constraint k
    join pg_class f on f.oid = k.conrelid join pg_namespace fs on fs.oid = f.relnamespace
    join pg_class t on t.oid = k.confrelid join pg_namespace ts on ts.oid = t.relnamespace
  where k.contype = 'f' and to_regclass($1)::oid in (k.conrelid, k.confrelid)
    and (k.conparentid = 0 or k.conrelid = to_regclass($1)::oid)
  order by f.relname, k.conname`

const guessesMax = 10

async function guessRelatedTables(
  db: Database,
  { schema, name, primaryKey, columns }: CatalogTable,
  known: ReadonlySet<string>,
): Promise<Omit<RelatedTable, 'table'>[]> {
  const table = normalizeName(name)
  const stem = table.replace(/s$/, '')
  const [key = ''] = primaryKey.length === 1 ? primaryKey.map(normalizeName) : []
  // A key such as id or no has the same name in most tables.
  const names = [table, stem, table + key, stem + key, ...(key.length > 3 ? [key] : [])]
  const { rows } = await db.query<{ from: string; column: string | null }>(guessesSql, [schema, table, names])
  const own = key === '' ? undefined : columns.find((each) => each.name === primaryKey[0])?.sql
  return rows
    .filter(({ from }) => !known.has(from))
    .slice(0, guessesMax)
    .map(({ from, column }) => {
      if (column === null || own === undefined) return { sql: from, columns: [], ownColumns: [], isGuess: true }
      return { sql: from, columns: [column], ownColumns: [own], isGuess: true }
    })
}

const normalizeName = (name: string) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')

/** Names are alike if they begin with the same half of the table's name. */
const guessesSql = `
  select format('%I.%I', n.nspname, c.relname) as "from", found.column
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
    cross join lateral (select (
      select quote_ident(a.attname) from pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        and regexp_replace(lower(a.attname), '[^[:alnum:]]', '', 'g') = any($3)
      order by a.attnum limit 1) as column,
      starts_with(regexp_replace(lower(c.relname), '[^[:alnum:]]', '', 'g'), left($2, greatest(length($2) / 2, 3))) as alike) found
  where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition and (found.column is not null or found.alike)
  order by found.column is null, c.relname`
