import type pg from 'pg'
import type { Mappings } from '../mapping/loadMappings.ts'
import { sourceFieldOfColumn, sourceFieldsOfPayloads } from '../mapping/sourceFields.ts'
import { hasIndexOfCapture, readWritersWithoutInsert } from '../outbox/captureTriggers.ts'
import { findCurrencyColumns } from '../outbox/currencyColumns.ts'
import * as problems from '../outbox/findTableProblems.ts'
import { findSchemaPermissionProblem } from '../outbox/outboxGrants.ts'
import { type OutboxTable, qualifiedNameSql } from '../outbox/outboxTable.ts'
import { addTableSchemaIfFound, findTableOfSimilarName } from '../outbox/readTableShape.ts'
import { quoteForShell } from '../plainText.ts'
import { queryOne } from '../postgres/database.ts'
import type { Resource } from '../resources.ts'
import * as catalog from './catalogTable.ts'
import { type DocumentParts, PartsRefused, readDocumentParts } from './documentParts.ts'
import { proposeCapture, proposeDocument } from './proposeCapture.ts'
import { proposeMapping } from './proposeMapping.ts'
import { findIdColumn, isOurTable, proposeOutboxFile } from './proposeOutboxFile.ts'
import { proposeSourceQuery } from './proposeSourceQuery.ts'
import { type RelatedTables, readRelatedTables } from './relatedTables.ts'

export type DescribedTable =
  | { readonly kind: 'missing'; readonly nearest: string | null }
  /** A permission is missing, and `problem` has the grant; or the relation is not a table. */
  | { readonly kind: 'denied'; readonly problem: string }
  | {
      readonly kind: 'described'
      readonly table: catalog.CatalogTable
      readonly related: RelatedTables
      readonly files: readonly { readonly name: string; readonly text: string }[]
      readonly warnings: readonly string[]
    }

export interface DescribeOptions {
  /** Null chooses orders if other tables refer to the table, or a sample payload has items. */
  readonly endpoint: Resource | null
  /** The type of the records; null for one named after the table. */
  readonly type: string | null
  /** Proposes the trigger that captures changes, in place of outbox.yaml; null if the table itself is the outbox. */
  readonly capture: CaptureOptions | null
}

interface CaptureOptions {
  /** The tables below the document, as in `readDocumentParts`. */
  readonly children: readonly string[]
  readonly outbox: Pick<OutboxTable, 'schema' | 'table'>
  /** The command as it was given. */
  readonly command: string
}

export async function proposeFilesForTable(
  pool: pg.Pool,
  tableNamed: Pick<OutboxTable, 'schema' | 'table'>,
  existing: Mappings,
  { endpoint, type: typeGiven, capture }: DescribeOptions,
): Promise<DescribedTable> {
  const name = await addTableSchemaIfFound(pool, tableNamed)
  const denied = await findSchemaPermissionProblem(pool, name)
  if (denied !== null) return { kind: 'denied', problem: denied }
  const found = await catalog.readCatalogTable(pool, qualifiedNameSql(name))
  if (found === null) return { kind: 'missing', nearest: await findTableOfSimilarName(pool, name) }
  if (problems.hasForeignRows(found.kind)) return { kind: 'denied', problem: await viewProblem(pool, found) }
  const table = await catalog.addSamples(pool, found)
  const parts = capture && (await readDocumentParts(pool, table, capture.children))
  const related = addGivenChildren(await readRelatedTables(pool, table), parts)
  const hasRelated = related.refersTo.length + related.referredBy.length > 0
  const isDocument = parts !== null || hasRelated
  const documents = isDocument ? [] : table.columns.filter(catalog.mayHoldJson)
  const hasQuery = isDocument || (endpoint === 'orders' && documents.length === 0)
  const typeName = typeGiven ?? (table.name.replace(/[^A-Za-z0-9_-]+/g, '_').replace(/^_+(?=.)/, '') || 'record')
  const samples = await readSamples(pool, table, documents)
  const types = documents.length === 0 ? [{ type: typeName, payloads: [] }] : samples
  const mapped = types.flatMap(({ type }) => (type !== null && existing.has(type) ? [type] : []))
  const mappings = types
    .filter(({ type }) => type === null || !existing.has(type))
    .map(({ type, payloads }) => {
      const fields = sourceFieldsOfPayloads(payloads)
      const hasItems = related.referredBy.length > 0 || fields.some((each) => each.name === 'items')
      const to = endpoint ?? (hasItems ? 'orders' : 'data')
      const id = findIdColumn(table)
      const key = parts?.key ?? (id === null ? [] : [id])
      const sql = hasQuery ? proposeSourceQuery(table, key, related, to === 'orders') : null
      const columns = isOurTable(table) ? [] : table.columns.map(toCandidate)
      const payloadFields = sql !== null && to === 'orders' ? [itemsOfQuery] : fields
      const document = parts && proposeDocument(parts)
      const text = proposeMapping({ type, endpoint: to, sql, document, payloadFields, columns })
      return { name: fileName(type ?? typeName), text }
    })
  const source = { type: documents.length === 0 ? typeName : null, hasQuery }
  const first =
    capture !== null && parts !== null
      ? await proposeCaptureFile(pool, parts, capture, typeName)
      : {
          name: 'outbox.yaml',
          text: proposeOutboxFile(table, { ...source, currencies: await findCurrencyColumns(pool, table.sql) }),
        }
  const warnings = [
    ...mapped.map(mappedWarning),
    ...(parts === null ? [] : childrenWarnings(parts, related)),
    ...(await findReadProblems(pool, table)),
  ]
  return { kind: 'described', table, related, files: [first, ...mappings], warnings }
}

async function proposeCaptureFile(
  pool: pg.Pool,
  parts: DocumentParts,
  { outbox: named, command }: CaptureOptions,
  type: string,
) {
  const outbox = await catalog.readCatalogTable(pool, qualifiedNameSql(await addTableSchemaIfFound(pool, named)))
  if (outbox === null || !isOurTable(outbox) || !(await hasIndexOfCapture(pool, outbox.sql)))
    throw new PartsRefused(
      'the trigger writes to the table that `outboxd migrate --outbox` creates, with its indexes: run that first',
    )
  const tables = [parts.document, ...parts.references.map(({ table }) => table)].map(({ sql }) => sql)
  const writers = await readWritersWithoutInsert(pool, tables, outbox.sql)
  const file = fileName(type).replace(/yaml$/, 'capture.sql')
  return { name: file, text: proposeCapture(parts, { type, outbox: outbox.sql, command, file, writers }) }
}

const itemsOfQuery = { name: 'items', path: 'items', kind: 'array' } as const

const toCandidate = (column: catalog.CatalogColumn) => ({
  ...sourceFieldOfColumn(column.name, column.type),
  label: catalog.describeCandidate(column),
})

/** Reads the payloads of the only column that may have them. Of our own table, by type. */
async function readSamples(
  pool: pg.Pool,
  table: catalog.CatalogTable,
  [column, ...others]: readonly catalog.CatalogColumn[],
): Promise<readonly catalog.SamplePayloads[]> {
  const none = [{ type: null, payloads: [] }]
  if (column === undefined || others.length > 0 || column.type === 'bytea' || !column.isReadable) return none
  const read = await catalog.readSamplePayloads(pool, table, column, isOurTable(table) ? 'type' : 'null')
  return read.length === 0 ? none : read
}

/** Explains why views are not described: a view has no keys, and may be slow. */
async function viewProblem(pool: pg.Pool, { kind, sql, schema, name }: catalog.CatalogTable): Promise<string> {
  const tables = kind === 'f' ? [] : await problems.findTablesOfView(pool, sql)
  return `${schema}.${name} is ${problems.kindNamesOfForeignRows[kind]}, for which outboxd proposes no files: ${problems.useTableInsteadClause(kind, tables)}. docs/start/outbox.md says what a view needs`
}

async function findReadProblems(pool: pg.Pool, { columns, sql }: catalog.CatalogTable): Promise<string[]> {
  const remarks = await problems.findRowSecurityRemarks(pool, sql)
  if (columns.every(({ isReadable }) => isReadable)) return remarks
  const { role } = await queryOne<{ role: string }>(pool, 'select quote_ident(current_user) as role')
  const grant = `grant select on ${sql} to ${role};`
  return [`the database role lacks permissions. The owner grants them with:\n${grant}`, ...remarks]
}

/** Adds the children of the document that `--child` names and no foreign key declares. */
function addGivenChildren(related: RelatedTables, parts: DocumentParts | null): RelatedTables {
  const sqlOf = (columns: readonly catalog.CatalogColumn[]) => columns.map(({ sql }) => sql)
  const nameOf = (from: string, columns: readonly string[]) => `${from}(${columns.join(', ')})`
  const declared = new Set(related.referredBy.map(({ from, columns }) => nameOf(from, columns)))
  const given = (parts?.references ?? []).filter(
    ({ table, columns, to }) => to.sql === parts?.document.sql && !declared.has(nameOf(table.sql, sqlOf(columns))),
  )
  const references = given.map(({ table, columns, to, toColumns }) => {
    return { from: table.sql, columns: sqlOf(columns), to: to.sql, toColumns: sqlOf(toColumns) }
  })
  const names = new Set(given.map(({ table }) => table.sql))
  return {
    ...related,
    referredBy: [...related.referredBy, ...references],
    guesses: related.guesses.filter(({ from }) => !names.has(from)),
    tables: new Map([...related.tables, ...given.map(({ table }) => [table.sql, table] as const)]),
  }
}

/** Warns if tables refer to the document and none of them is captured. */
function childrenWarnings({ references }: DocumentParts, { referredBy }: RelatedTables): string[] {
  if (references.length > 0 || referredBy.length === 0) return []
  const children = referredBy.map(({ from, columns }) => `--child ${quoteForShell(`${from}(${columns.join(', ')})`)}`)
  return [
    `only changes of the table itself are captured. Give each table whose rows are part of the document: ${children.join(', or ')}`,
  ]
}

const mappedWarning = (type: string) =>
  `MAPPINGS_DIR has a mapping file of the type "${type}" already, so none is proposed for it. \`outboxd map --outbox ID\` shows the request that it makes. If the file is for other records, give these rows another type in outbox.yaml`

const fileName = (type: string) => {
  const plain = type.replace(/[^A-Za-z0-9_.-]+/g, '-').replace(/^[.-]+/, '') || 'record'
  return `${plain === 'outbox' ? 'outbox-record' : plain}.yaml`
}
