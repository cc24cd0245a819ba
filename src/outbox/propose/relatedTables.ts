import { findAllByUsualName, isUsualName, normalizeName } from '../../mapping/usualNames.ts'
import type { Database } from '../../postgres/database.ts'
import {
  addKnownValuesFromRows,
  type CatalogColumn,
  type CatalogTable,
  isIntegerOrNumericColumn,
  isTextColumn,
  qualifiedTableSql,
  readCatalogTable,
} from './catalogTable.ts'

/** A document as an ERP keeps it: a header, its lines, and the tables to which both refer. */
export interface ErpDocument {
  readonly header: CatalogTable
  /** The header's primary key. */
  readonly key: CatalogColumn
  readonly customer: TableLookup | null
  readonly lines: DocumentLines | null
}

export interface TableLookup {
  readonly column: string
  readonly table: CatalogTable
  readonly key: string
}

export interface DocumentLines {
  /** Without the column of its own key, which means nothing outside of the ERP. */
  readonly table: CatalogTable
  /** Refers to the header's key. */
  readonly column: string
  readonly article: TableLookup | null
  readonly unit: TableLookup | null
  /** SQL that leaves out headings and notes; null for all lines. A line has the alias l. */
  readonly condition: string | null
}

export function tablesOfDocument({ header, customer, lines }: ErpDocument): CatalogTable[] {
  const lookups = [customer, lines?.article, lines?.unit].flatMap((lookup) => (lookup ? [lookup.table] : []))
  const all = [header, ...(lines === null ? [] : [lines.table]), ...lookups]
  return [...new Map(all.map((table) => [qualifiedTableSql(table), table])).values()]
}

/**
 * Uses foreign keys, or names if the database declares no foreign keys (SAP, legacy ERPs).
 * @returns null if the table has neither lines nor a customer, or the primary key is not one column
 */
export async function findDocumentTables(db: Database, header: CatalogTable): Promise<ErpDocument | null> {
  const key =
    header.primaryKey.length === 1 ? header.columns.find(({ name }) => name === header.primaryKey[0]) : undefined
  if (key === undefined || header.kind !== 'r' || header.hasHeirs) return null
  const lines = await findLines(db, header, key)
  const customer = await findLookup(db, header, 'customer')
  return lines === null && customer === null ? null : { header, key, customer, lines }
}

async function findLines(db: Database, header: CatalogTable, key: CatalogColumn): Promise<DocumentLines | null> {
  const referring = (await readForeignKeys(db, header)).filter(
    ({ isTo, isFrom, key: column }) => isTo && !isFrom && column === key.name,
  )
  const isDeclared = referring.length > 0
  let best: { score: number; table: CatalogTable; column: string } | null = null
  for (const { from, column } of isDeclared ? referring : await readReferencesByName(db, header, key)) {
    const table = await readCatalogTable(db, from)
    const score = table === null ? 0 : scoreLines(table, column)
    if (table !== null && score > (best?.score ?? (isDeclared ? 0 : namedScoreMin))) best = { score, table, column }
  }
  if (best === null) return null
  const own = best.table.primaryKey.length === 1 ? best.table.primaryKey[0] : undefined
  const table = { ...best.table, columns: best.table.columns.filter(({ name }) => name !== own) }
  return {
    table,
    column: best.column,
    article: (await findLookup(db, table, 'article')) ?? (await findCodedLookup(db, table, best.column)),
    unit: await findLookup(db, table, 'unit'),
    condition: await findLinesCondition(db, table),
  }
}

/** Tables without a foreign key need a higher score. Quantity and article are not enough: a stock movement has both. */
const namedScoreMin = 3

/**
 * Returns how likely a table has the lines of a document; 0 for other tables, such as those that link two documents.
 */
function scoreLines({ name, columns, primaryKey }: CatalogTable, reference: string): number {
  const others = columns.filter((column) => column.name !== reference)
  // A key such as (order_id, line_no), with a number beside it, shows lines whatever the table's name.
  const isKeyedByHeader = primaryKey.length > 1 && primaryKey[0] === reference
  const hasNumber = others.some((column) => isIntegerOrNumericColumn(column) && !primaryKey.includes(column.name))
  return (
    (findAllByUsualName(others, 'quantity').length > 0 ? 2 : 0) +
    (findAllByUsualName(others, 'article').length > 0 ? 1 : 0) +
    (/line|position|pos$|item|detail|zeile|entry|artikel/.test(normalizeName(name)) ? 1 : 0) +
    (isKeyedByHeader && hasNumber ? 3 : 0)
  )
}

/** Returns a condition without headings and notes, which Tryton and Odoo keep among the lines. */
async function findLinesCondition(db: Database, table: CatalogTable): Promise<string | null> {
  if (table.columns.some(({ name }) => name === 'display_type')) return 'l.display_type is null'
  const kind = table.columns.find(({ name }) => name === 'type')
  if (kind === undefined) return null
  const { columns } = await addKnownValuesFromRows(db, { ...table, columns: [kind] })
  return columns[0]?.knownValues?.includes('line') ? `l.type = 'line'` : null
}

async function findLookup(
  db: Database,
  table: CatalogTable,
  what: 'customer' | 'article' | 'unit',
): Promise<TableLookup | null> {
  const keys = await readForeignKeys(db, table)
  for (const column of findAllByUsualName(table.columns, what)) {
    const declared = keys.find(({ isFrom, column: from }) => isFrom && from === column.name)
    const found = declared ?? (await readKeyByName(db, table, column))
    if (found !== null) return readLookup(db, found)
    if (isTextColumn(column)) return null
  }
  return null
}

/** Finds the first table that lines refer to and that has a column for an article's number. */
async function findCodedLookup(db: Database, table: CatalogTable, reference: string): Promise<TableLookup | null> {
  for (const found of await readForeignKeys(db, table)) {
    const lookup = found.isFrom && found.column !== reference ? await readLookup(db, found) : null
    if (lookup?.table.columns.some(({ name }) => name !== lookup.key && isUsualName(name, 'code'))) return lookup
  }
  return null
}

/**
 * Finds columns of the same schema that are named like the header or its key. Tables named like the header come first.
 */
async function readReferencesByName(
  db: Database,
  header: CatalogTable,
  key: CatalogColumn,
): Promise<Pick<ForeignKey, 'from' | 'column'>[]> {
  const [table, name] = [normalizeName(header.name), normalizeName(key.name)]
  // In SAP, OINV has the lines INV1.
  const stem = /^O[A-Z]{3}$/.test(header.name) ? table.slice(1) : table.replace(/(header|head|kopf|en|e|s)$/, '')
  const isGeneral = /^(id|no|nr|code|key)$/.test(name)
  const own = isGeneral ? [`document${name}`, `order${name}`] : [name]
  const { rows } = await db.query<Pick<ForeignKey, 'from' | 'column'>>(
    `select format('%I.%I', n.nspname, c.relname) as "from", a.attname as column
     from pg_attribute own join pg_class h on h.oid = own.attrelid join pg_type t on t.oid = own.atttypid
       join pg_class c on c.relnamespace = h.relnamespace and c.oid <> h.oid and c.relkind in ('r', 'p') and not c.relispartition
       join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       join pg_type u on u.oid = a.atttypid and u.typcategory = t.typcategory
     where own.attrelid = to_regclass($1)::oid and own.attname = $2::text
       and regexp_replace(lower(a.attname), '[^[:alnum:]]', '', 'g') = any($3)
       and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary and i.indnkeyatts = 1 and i.indkey[0] = a.attnum)
     order by starts_with(regexp_replace(lower(c.relname), '[^[:alnum:]]', '', 'g'), $4) desc, c.relname limit 30`,
    [
      qualifiedTableSql(header),
      key.name,
      [...own, table, stem, `${table}${name}`, `${stem}${name}`, `${stem}id`],
      stem,
    ],
  )
  return rows
}

/** Finds a table of the same schema whose primary key, or whose own name, is like the column's name. */
async function readKeyByName(db: Database, table: CatalogTable, column: CatalogColumn): Promise<LookupKey | null> {
  const stem = normalizeName(column.name).replace(/(id|no|nr|nummer|number|code|key)$/, '')
  const { rows } = await db.query<LookupKey>(
    `select format('%I.%I', n.nspname, c.relname) as "to", own.attname as column, a.attname as key
     from pg_attribute own join pg_class h on h.oid = own.attrelid join pg_type t on t.oid = own.atttypid
       join pg_class c on c.relnamespace = h.relnamespace and c.oid <> h.oid and c.relkind in ('r', 'p')
       join pg_namespace n on n.oid = c.relnamespace
       join pg_index i on i.indrelid = c.oid and i.indisprimary and i.indnkeyatts = 1
       join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
       join pg_type u on u.oid = a.atttypid and u.typcategory = t.typcategory
     where own.attrelid = to_regclass($1)::oid and own.attname = $2::text and (
       regexp_replace(lower(a.attname), '[^[:alnum:]]', '', 'g') = $3
       or regexp_replace(lower(c.relname), '[^[:alnum:]]', '', 'g') = any($4))
     order by regexp_replace(lower(c.relname), '[^[:alnum:]]', '', 'g') = any($4) desc, c.relname limit 1`,
    [qualifiedTableSql(table), column.name, normalizeName(column.name), [stem, `${stem}s`, `${stem}n`, `${stem}en`]],
  )
  return rows[0] ?? null
}

async function readLookup(db: Database, { to, column, key }: LookupKey): Promise<TableLookup | null> {
  const table = await readCatalogTable(db, to)
  return table && { column, key, table }
}

/** Tables are quoted, with their schemas. */
interface LookupKey {
  readonly column: string
  readonly to: string
  readonly key: string
}

interface ForeignKey extends LookupKey {
  readonly from: string
  /** True if the given table has the foreign key. */
  readonly isFrom: boolean
  readonly isTo: boolean
}

/** Reads foreign keys of one column that lead from the table or to it. */
async function readForeignKeys(db: Database, table: CatalogTable): Promise<ForeignKey[]> {
  const { rows } = await db.query<ForeignKey>(
    `select format('%I.%I', fs.nspname, f.relname) as "from", a.attname as column, b.attname as key,
       format('%I.%I', ts.nspname, t.relname) as "to",
       f.oid = to_regclass($1)::oid as "isFrom", t.oid = to_regclass($1)::oid as "isTo"
     from pg_constraint k
       join pg_class f on f.oid = k.conrelid join pg_namespace fs on fs.oid = f.relnamespace
       join pg_class t on t.oid = k.confrelid join pg_namespace ts on ts.oid = t.relnamespace
       join pg_attribute a on a.attrelid = f.oid and a.attnum = k.conkey[1]
       join pg_attribute b on b.attrelid = t.oid and b.attnum = k.confkey[1]
     where k.contype = 'f' and cardinality(k.conkey) = 1 and to_regclass($1)::oid in (f.oid, t.oid)
     order by f.relname, a.attnum`,
    [qualifiedTableSql(table)],
  )
  return rows
}
