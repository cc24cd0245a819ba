import type pg from 'pg'
import { type Database, inTransaction } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import {
  type CatalogColumn,
  type CatalogTable,
  DescribeRefused,
  nameForm,
  parseName,
  parseTableName,
  readTable,
  type TableName,
} from './catalogTable.ts'
import { readForeignKeys } from './relatedTables.ts'

/** A reference from a row of a document to the row above it, up to the document's own table. */
export interface PartReference {
  readonly table: CatalogTable
  readonly columns: readonly CatalogColumn[]
  readonly to: CatalogTable
  readonly toColumns: readonly CatalogColumn[]
  /** SQL about the row `r`; null if each row belongs to a document. */
  readonly condition: string | null
}

/** A document: one table with a row for each, and the tables below it. */
export interface DocumentParts {
  readonly document: CatalogTable
  /** The columns that identify a document. */
  readonly key: readonly CatalogColumn[]
  /** The first one is the document itself. */
  readonly paths: readonly [Path, ...Path[]]
}

/** References of which each leads to the table of the next one. The last one has the document's key. */
export type Path = readonly [PartReference, ...PartReference[]]

/**
 * Reads the tables below a document.
 *
 * @param children as the user gives them: `sale_line(sale)`, `"Tax"(parent) where parenttype = 'Order'`,
 *   `discount(line) references sale_line(id)`
 * @throws DescribeRefused
 */
export async function readDocumentParts(
  pool: pg.Pool,
  document: CatalogTable,
  children: readonly string[],
): Promise<DocumentParts> {
  const key = document.primaryKey.map((name) => columnOf(document, name))
  if (key.length === 0)
    throw new DescribeRefused(
      `${document.sql} has no primary key, so a row of the outbox cannot name a document: add one`,
    )
  assertCapturable(document)
  for (const column of key) {
    if (!column.isDeterministic)
      throw new DescribeRefused(
        `${document.sql}.${column.sql} has a collation that takes different texts for equal, so a row of the outbox would not name one document. Give it a deterministic one`,
      )
    if (kindOfKey(column) === null)
      throw new DescribeRefused(
        `${document.sql}.${column.sql} has the type ${column.exactType}. A key may have integers, numeric, texts, uuids and dates`,
      )
  }
  const given = children.map(parseChild)
  const tables = await Promise.all(given.map(({ table }) => readTable(pool, table)))
  tables.forEach(assertCapturable)
  const parts = [document, ...tables]
  const references: PartReference[] = []
  for (const [i, child] of given.entries()) {
    const table = tables[i] as CatalogTable
    const columns = child.columns.map((name) => columnOf(table, name))
    const { to, toColumns } = await readTarget(pool, child, { table, columns }, parts, key)
    assertSameKinds(table, columns, to, toColumns)
    if (child.condition !== null) await assertConditionIsValid(pool, table, child.condition)
    references.push({ table, columns, to, toColumns, condition: child.condition })
  }
  const own: PartReference = { table: document, columns: key, to: document, toColumns: key, condition: null }
  return { document, key, paths: [[own], ...references.map((each) => findPath(each, own, references))] }
}

/** Plans the condition as the trigger sees it: a wrong one would fail each statement of the ERP. */
async function assertConditionIsValid(pool: pg.Pool, { sql }: CatalogTable, condition: string): Promise<void> {
  await inTransaction(pool, (db) => db.query(`explain select from (select * from ${sql}) r where ${condition}`), {
    openingSql: 'set transaction read only; set local search_path = pg_catalog, pg_temp',
  }).catch((error: unknown) => {
    if (typeof errorCodeOf(error) !== 'string') throw error
    throw new DescribeRefused(`--child: the condition "${condition}" fails: ${(error as Error).message}`)
  })
}

interface GivenChild {
  readonly text: string
  readonly table: TableName
  readonly columns: readonly string[]
  readonly target: { readonly table: TableName; readonly columns: readonly string[] } | null
  readonly condition: string | null
}

const reference = String.raw`(${nameForm}(?:\.${nameForm})?)\(((?:${nameForm},)*${nameForm})\)`
const childForm = new RegExp(String.raw`^${reference}(?:\s+references\s+${reference})?(?:\s+where\s+(.*))?$`, 'is')

function parseChild(text: string): GivenChild {
  const [, from, columns = '', to, toColumns = '', condition = null] = childForm.exec(text.trim()) ?? []
  const table = parseTableName(from ?? '')
  const target = to === undefined ? null : parseTableName(to)
  if (table === null)
    throw new DescribeRefused(
      `--child "${text}" must be TABLE(COLUMN), such as: --child "sale_line(sale)". After it may follow: references TABLE(COLUMN), and: where CONDITION`,
    )
  return {
    ...{ text, table, columns: parseNames(columns), condition },
    target: target && { table: target, columns: parseNames(toColumns) },
  }
}

const parseNames = (list: string): string[] =>
  [...list.matchAll(new RegExp(nameForm, 'g'))].map(([name]) => parseName(name))

function assertCapturable({ sql, hasHeirs }: CatalogTable): void {
  if (hasHeirs)
    throw new DescribeRefused(
      `${sql} has inheriting tables, whose rows would not fire its trigger: capture each of them`,
    )
}

function columnOf(table: CatalogTable, column: string): CatalogColumn {
  const found = table.columns.find((each) => each.name === column)
  if (found !== undefined) return found
  throw new DescribeRefused(`${table.sql} has no column "${column}"`)
}

interface From {
  readonly table: CatalogTable
  readonly columns: readonly CatalogColumn[]
}

/** Returns where the columns lead: as given, or by their foreign key, or to the document's key if they have none. */
async function readTarget(
  db: Database,
  { text, target }: GivenChild,
  { table, columns }: From,
  parts: readonly CatalogTable[],
  key: readonly CatalogColumn[],
): Promise<{ to: CatalogTable; toColumns: readonly CatalogColumn[] }> {
  const [document] = parts as [CatalogTable]
  const foreign = (await readForeignKeys(db, table)).filter((each) => each.from === table.sql)
  const from = columns.map(({ sql }) => sql)
  const ownKeys = foreign.filter((each) => hasSameMembers(each.columns, from))
  const partOf = (sql: string) => parts.find((part) => part.sql === sql)
  if (target !== null) {
    const named = await readTable(db, target.table)
    const to = partOf(named.sql)
    if (to === undefined)
      throw new DescribeRefused(
        `--child "${text}": ${named.sql} is not a part of the document. Give it with --child, too`,
      )
    return { to, toColumns: target.columns.map((each) => columnOf(to, each)) }
  }
  const leading = ownKeys.find((each) => partOf(each.to) !== undefined)
  if (leading !== undefined) {
    const to = partOf(leading.to) as CatalogTable
    const ordered = from.map((column) => leading.toColumns[leading.columns.indexOf(column)])
    return { to, toColumns: ordered.map((sql) => to.columns.find((each) => each.sql === sql) as CatalogColumn) }
  }
  const [other] = [...ownKeys, ...foreign.filter((each) => each.columns.some((column) => from.includes(column)))]
  if (other !== undefined)
    throw new DescribeRefused(
      `--child "${text}": its foreign key refers to ${other.to}, which is not a part of the document ${document.sql}. If ${other.to} is a part, give it with --child, too`,
    )
  return { to: document, toColumns: key }
}

const hasSameMembers = (some: readonly string[], others: readonly string[]) =>
  some.length === others.length && some.every((each) => others.includes(each))

/** Keys are compared as JSON, in which all integers and numerics are alike, and all texts. */
function kindOfKey({ type }: CatalogColumn): 'number' | 'text' | 'uuid' | 'date' | null {
  if (/^(smallint|integer|bigint|numeric)$/.test(type)) return 'number'
  if (/^(text|character varying|character)$/.test(type)) return 'text'
  return type === 'uuid' || type === 'date' ? type : null
}

function assertSameKinds(
  table: CatalogTable,
  columns: readonly CatalogColumn[],
  to: CatalogTable,
  toColumns: readonly CatalogColumn[],
): void {
  const names = (some: readonly CatalogColumn[]) => some.map(({ sql }) => sql).join(', ')
  const from = `${table.sql}(${names(columns)})`
  if (columns.length !== toColumns.length)
    throw new DescribeRefused(`${from} must have as many columns as ${to.sql}(${names(toColumns)})`)
  for (const [i, column] of columns.entries()) {
    const other = toColumns[i] as CatalogColumn
    if (kindOfKey(column) === null || kindOfKey(column) !== kindOfKey(other))
      throw new DescribeRefused(
        `${table.sql}.${column.sql} is ${column.exactType} and ${to.sql}.${other.sql} is ${other.exactType}: they cannot name one row`,
      )
  }
}

function findPath(
  from: PartReference,
  own: PartReference,
  references: readonly PartReference[],
  seen: readonly PartReference[] = [],
): Path {
  const hasKey = from.to.sql === own.to.sql && hasSameMembers(from.toColumns.map(nameOf), own.toColumns.map(nameOf))
  if (hasKey) return [from]
  const next = from.to.sql === own.to.sql ? own : references.find(({ table }) => table.sql === from.to.sql)
  if (next === undefined || seen.includes(next))
    throw new DescribeRefused(
      `${from.table.sql} refers to ${from.to.sql}, and no --child leads from there to ${own.to.sql}`,
    )
  return [from, ...findPath(next, own, references, [...seen, next])]
}

const nameOf = ({ name }: CatalogColumn) => name
