import { isUsualName, normalizeName, rankByUsualName, splitNameIntoWords } from '../../mapping/usualNames.ts'
import { type Database, quoteIdentifier } from '../../postgres/database.ts'
import {
  type CatalogColumn,
  type CatalogTable,
  qualifiedTable,
  readCatalogTable,
  readDistinctValues,
} from './catalogTable.ts'
import { isNumberColumn, isTextColumn } from './findSentColumnCandidates.ts'

/** An order as an ERP keeps it: a header, its lines, and the tables that both look up. */
export interface ErpDocument {
  readonly header: CatalogTable
  /** The header's primary key. */
  readonly key: CatalogColumn
  readonly customer: Lookup | null
  readonly lines: Lines | null
}

export interface Lookup {
  readonly column: string
  readonly table: CatalogTable
  readonly key: string
}

export interface Lines {
  /** Without the column of its own key, which means nothing outside of the ERP. */
  readonly table: CatalogTable
  /** Refers to the header's key. */
  readonly column: string
  readonly article: Lookup | null
  readonly unit: Lookup | null
  /** Leaves out headings and notes; null for all lines. The line has the alias l. */
  readonly condition: string | null
}

export function tablesOfDocument({ header, customer, lines }: ErpDocument): CatalogTable[] {
  const lookups = [customer, lines?.article, lines?.unit].flatMap((lookup) => (lookup ? [lookup.table] : []))
  const all = [header, ...(lines === null ? [] : [lines.table]), ...lookups]
  return [...new Map(all.map((table) => [qualifiedTable(table), table])).values()]
}

/**
 * Finds the lines and lookups of a table by its foreign keys, or else by names.
 *
 * @returns null if it finds neither, or the primary key is not one column
 */
export async function findDocumentTables(db: Database, header: CatalogTable): Promise<ErpDocument | null> {
  const key =
    header.primaryKey.length === 1 ? header.columns.find(({ name }) => name === header.primaryKey[0]) : undefined
  if (key === undefined || header.kind !== 'r' || header.hasHeirs) return null
  const lines = await findLines(db, header, key)
  const known = { ...header, columns: await readFilledColumns(db, header) }
  const customer = await findLookup(db, known, 'customer')
  return lines === null && customer === null ? null : { header: known, key, customer, lines }
}

interface Found {
  readonly schema: string
  readonly table: string
  readonly column: string
}

interface Reference extends Found {
  readonly key: string
}

const tablesMax = 30

async function findLines(db: Database, header: CatalogTable, key: CatalogColumn): Promise<Lines | null> {
  const { rows: referring } = await db.query<Found>(referringSql, [qualifiedTable(header), key.name])
  const { rows: alike } =
    referring.length > 0
      ? { rows: [] }
      : await db.query<Found>(namedSql, [
          qualifiedTable(header),
          key.name,
          namesOfReference(header.name, key.name),
          stemOf(header.name),
          tablesMax,
        ])
  let best: { score: number; table: CatalogTable; column: string } | null = null
  for (const found of [...referring, ...alike].slice(0, tablesMax)) {
    const table = await readCatalogTable(db, [found.schema, found.table].map(quoteIdentifier).join('.'))
    if (table === null) continue
    const score = scoreLines(header.name, table, found.column)
    if (score >= linesScoreMin && score > (best?.score ?? 0)) best = { score, table, column: found.column }
  }
  if (best === null) return null
  const { column } = best
  const filled = await readFilledColumns(db, best.table)
  const own = best.table.primaryKey.length === 1 ? best.table.primaryKey[0] : undefined
  const table = { ...best.table, columns: filled.filter(({ name }) => name !== own) }
  return {
    table,
    column,
    article: (await findLookup(db, table, 'article')) ?? (await findCoded(db, table, column)),
    unit: await findLookup(db, table, 'unit'),
    condition: await findLinesCondition(db, table),
  }
}

/** Finds the first table that lines refer to and that has a column for an article's number. */
async function findCoded(db: Database, table: CatalogTable, reference: string): Promise<Lookup | null> {
  const { rows } = await db.query<Reference>(referencesSql, [qualifiedTable(table)])
  for (const found of rows) {
    const lookup = found.column === reference ? null : await readLookup(db, found)
    if (lookup?.table.columns.some(({ name }) => name !== lookup.key && isUsualName(name, 'code'))) return lookup
  }
  return null
}

/** In Tryton and Odoo a line may be a heading or a note. */
async function findLinesCondition(db: Database, table: CatalogTable): Promise<string | null> {
  const kind = table.columns.find(({ name }) => /^(type|display_type)$/.test(name))
  if (kind === undefined || !kind.isReadable) return null
  if (kind.name === 'display_type') return 'l.display_type is null'
  return (await readDistinctValues(db, table, kind.name))?.includes('line') ? `l.type = 'line'` : null
}

/** Two points are for a quantity, and one for any other sign. */
const linesScoreMin = 3

function scoreLines(header: string, table: CatalogTable, reference: string): number {
  const { name, columns } = table
  const others = columns.filter((column) => column.name !== reference)
  const has = (what: 'quantity' | 'article') => {
    const { named, alike } = rankByUsualName(others, nameOf, what)
    return named.length > 0 || alike.length > 0
  }
  const isLines = /line|position|pos$|item|detail|zeile|entry|artikel/.test(normalizeName(name))
  return (
    (has('quantity') ? 2 : 0) +
    (has('article') ? 1 : 0) +
    (isLines ? 1 : 0) +
    (sharesStem(header, name) ? 2 : 0) +
    (isKeyedByHeader(table, reference) ? 3 : 0)
  )
}

/** True for a primary key such as (order_id, line_no) with a numeric column: lines of any name. */
function isKeyedByHeader({ primaryKey, columns }: CatalogTable, reference: string): boolean {
  return (
    primaryKey.length > 1 &&
    primaryKey[0] === reference &&
    columns.some((column) => isNumberColumn(column) && !primaryKey.includes(column.name))
  )
}

/** True for OINV and INV1, sale_sale and sale_line, AUFTRAGSKOPF and AUFTRAGSPOSITION, Sales Header and Sales Line. */
function sharesStem(header: string, other: string): boolean {
  return (
    normalizeName(other).startsWith(stemOf(header)) || splitNameIntoWords(other)[0] === splitNameIntoWords(header)[0]
  )
}

const stemOf = (header: string): string =>
  /^O[A-Z]{3}$/.test(header)
    ? normalizeName(header).slice(1)
    : normalizeName(header).replace(/(header|head|kopf|en|e|s)$/, '')

function namesOfReference(header: string, key: string): string[] {
  const [table, name] = [normalizeName(header), normalizeName(key)]
  const own = /^(id|no|nr|code|key)$/.test(name) ? [`document${name}`, `order${name}`] : [name]
  return [
    ...own,
    ...[table, stemOf(header), table.replace(/s$/, '')].flatMap((each) => [each, `${each}${name}`, `${each}id`]),
  ]
}

async function findLookup(
  db: Database,
  table: CatalogTable,
  what: 'customer' | 'article' | 'unit',
): Promise<Lookup | null> {
  const { named, alike } = rankByUsualName(table.columns, nameOf, what)
  const { rows: foreign } = await db.query<Reference>(referencesSql, [qualifiedTable(table)])
  for (const column of [...named, ...alike]) {
    const found = foreign.find((each) => each.column === column.name) ?? (await findByName(db, table, column))
    const lookup = found === null ? null : await readLookup(db, found)
    if (lookup !== null) return lookup
    if (isTextColumn(column)) return null
  }
  return null
}

async function readLookup(db: Database, { schema, table, column, key }: Reference): Promise<Lookup | null> {
  const other = await readCatalogTable(db, [schema, table].map(quoteIdentifier).join('.'))
  return other && { column, key, table: { ...other, columns: await readFilledColumns(db, other) } }
}

async function findByName(db: Database, table: CatalogTable, column: CatalogColumn): Promise<Reference | null> {
  const stem = normalizeName(column.name).replace(/(id|no|nr|nummer|number|code|key)$/, '')
  const { rows } = await db.query<Reference>(keyedSql, [
    qualifiedTable(table),
    column.name,
    normalizeName(column.name),
    [stem, `${stem}s`, `${stem}n`, `${stem}en`],
  ])
  return rows[0] ?? null
}

const nameOf = ({ name }: { name: string }) => name

/** Leaves out columns that are NULL in all of the first rows, because their names mislead. */
async function readFilledColumns(db: Database, table: CatalogTable): Promise<readonly CatalogColumn[]> {
  const readable = table.columns.filter(({ isReadable }) => isReadable)
  if (readable.length === 0) return table.columns
  const names = readable.map(({ name }) => quoteIdentifier(name))
  const { rows } = await db.query<{ counts: number[] }>(
    `select array[${['*', ...names].map((name) => `count(${name})`).join(', ')}]::int[] as counts
     from (select ${names.join(', ')} from ${qualifiedTable(table)} limit $1) looked_at`,
    [rowsLookedAt],
  )
  const [total = 0, ...filled] = rows[0]?.counts ?? []
  const empty = new Set(readable.filter((_, i) => total > 0 && filled[i] === 0).map(nameOf))
  return table.columns.filter(({ name }) => !empty.has(name))
}

const rowsLookedAt = 1_000

/** Foreign keys of one column that refer from this table to others. */
const referencesSql = `
  select a.attname as column, n.nspname as schema, c.relname as table, f.attname as key
  from pg_constraint k join pg_class c on c.oid = k.confrelid join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
    join pg_attribute f on f.attrelid = k.confrelid and f.attnum = k.confkey[1]
  where k.contype = 'f' and k.conrelid = to_regclass($1)::oid and cardinality(k.conkey) = 1 order by a.attnum`

/** Foreign keys of one column that refer from other tables to this one's key. */
const referringSql = `
  select n.nspname as schema, c.relname as table, a.attname as column
  from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
    join pg_attribute f on f.attrelid = k.confrelid and f.attnum = k.confkey[1]
  where k.contype = 'f' and k.confrelid = to_regclass($1)::oid and k.conrelid <> k.confrelid and cardinality(k.conkey) = 1
    and f.attname = $2 order by c.relname, a.attname`

/** Columns of the same schema that have one of the names and the same kind of type as the key. */
const namedSql = `
  select n.nspname as schema, c.relname as table, a.attname as column
  from pg_attribute own join pg_class h on h.oid = own.attrelid join pg_type t on t.oid = own.atttypid
    join pg_class c on c.relnamespace = h.relnamespace and c.oid <> h.oid and c.relkind in ('r', 'p') and not c.relispartition
    join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type u on u.oid = a.atttypid and u.typcategory = t.typcategory
  where own.attrelid = to_regclass($1)::oid and own.attname = $2::text
    and regexp_replace(lower(a.attname), '[^[:alnum:]]', '', 'g') = any($3)
    and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary and i.indnkeyatts = 1 and i.indkey[0] = a.attnum)
  order by starts_with(regexp_replace(lower(c.relname), '[^[:alnum:]]', '', 'g'), $4) desc, c.relname limit $5`

/** Tables of the same schema that have the column's name, or whose primary key has it. */
const keyedSql = `
  select n.nspname as schema, c.relname as table, $2::text as column, a.attname as key
  from pg_attribute own join pg_class h on h.oid = own.attrelid join pg_type t on t.oid = own.atttypid
    join pg_class c on c.relnamespace = h.relnamespace and c.oid <> h.oid and c.relkind in ('r', 'p')
    join pg_namespace n on n.oid = c.relnamespace
    join pg_index i on i.indrelid = c.oid and i.indisprimary and i.indnkeyatts = 1
    join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
    join pg_type u on u.oid = a.atttypid and u.typcategory = t.typcategory
  where own.attrelid = to_regclass($1)::oid and own.attname = $2::text and (
    regexp_replace(lower(a.attname), '[^[:alnum:]]', '', 'g') = $3
    or regexp_replace(lower(c.relname), '[^[:alnum:]]', '', 'g') = any($4))
  order by regexp_replace(lower(c.relname), '[^[:alnum:]]', '', 'g') = any($4) desc, c.relname limit 1`
