import type pg from 'pg'
import {
  captureFunctionName,
  hasIndexOfCapture,
  readOtherTableOfCapture,
  readWritersWithoutInsert,
} from '../outbox/captureTriggers.ts'
import { findCurrencyColumns } from '../outbox/currencyColumns.ts'
import { ourColumns } from '../outbox/migrateOutbox.ts'
import { quoteForShell } from '../plainText.ts'
import type { Resource } from '../resources.ts'
import {
  addSamples,
  type CatalogColumn,
  type CatalogTable,
  DescribeRefused,
  mayHoldJson,
  readTable,
  type TableName,
} from './catalogTable.ts'
import { type DocumentParts, readDocumentParts } from './documentParts.ts'
import { proposeCapture, proposeDocument } from './proposeCapture.ts'
import { proposeMapping } from './proposeMapping.ts'
import { findIdColumn, proposeOutboxFile } from './proposeOutboxFile.ts'
import { proposeSourceQuery } from './proposeSourceQuery.ts'
import { type RelatedTable, type RelatedTables, readRelatedTables } from './relatedTables.ts'

export interface DescribedTable {
  readonly table: CatalogTable
  readonly related: RelatedTables
  readonly files: readonly ProposedFile[]
  readonly warnings: readonly string[]
}

interface ProposedFile {
  readonly name: string
  readonly text: string
}

export interface DescribeOptions {
  /** Null chooses orders for documents, and if other tables refer to the table. */
  readonly endpoint: Resource | null
  /** The type of the records; null for one named after the table. */
  readonly type: string | null
  /** Proposes the trigger that captures changes, in place of outbox.yaml; null if the table itself is the outbox. */
  readonly capture: CaptureOptions | null
}

interface CaptureOptions {
  /** The tables below the document, as in `readDocumentParts`. */
  readonly children: readonly string[]
  readonly outbox: TableName
}

/** @throws DescribeRefused */
export async function proposeFilesForTable(
  pool: pg.Pool,
  name: TableName,
  { endpoint, type, capture }: DescribeOptions,
): Promise<DescribedTable> {
  const table = await addSamples(pool, await readTable(pool, name))
  const parts = capture && (await readDocumentParts(pool, table, capture.children))
  const related = await readRelatedTables(pool, table)
  const referring = related.below.filter(({ isGuess }) => !isGuess)
  const captured = parts === null ? [] : capturedTables(parts)
  const currencies = await findCurrencyColumns(pool, table.sql)
  const isDocument = parts !== null || related.above.length + referring.length > 0
  const hasQuery = isDocument || !table.columns.some(mayHoldJson)
  const typeOrName = type ?? toPlainName(table.name)
  const to = endpoint ?? (referring.length + captured.length > 0 ? 'orders' : 'data')
  const id = findIdColumn(table)
  const key = parts?.key ?? (id === null ? [] : [id])
  // Changes of other tables below the document would not be captured.
  const joined = captured.length > 0 ? { ...related, below: captured } : related
  const mapping = proposeMapping({
    type: hasQuery ? typeOrName : type,
    endpoint: to,
    sql: hasQuery ? proposeSourceQuery(table, key, joined, to === 'orders') : null,
    document: parts === null ? [] : proposeDocument(parts, currencies),
    columns: hasQuery ? table.columns : [],
  })
  const files = [{ name: `${nameFile(typeOrName)}.yaml`, text: mapping }]
  if (capture !== null && parts !== null) files.unshift(await proposeCaptureFile(pool, parts, capture, typeOrName))
  else if (!isOurTable(table)) {
    const text = proposeOutboxFile(table, { type: hasQuery ? typeOrName : null, currencies })
    files.unshift({ name: 'outbox.yaml', text })
  }
  const warnings = parts !== null && captured.length === 0 ? referring.map(uncapturedWarning) : []
  return { table, related, files, warnings }
}

/** The captured tables that refer to the document itself. */
function capturedTables({ document, paths: [, ...below] }: DocumentParts): RelatedTable[] {
  const sqlOf = (columns: readonly CatalogColumn[]) => columns.map(({ sql }) => sql)
  return below
    .filter(([{ to }]) => to.sql === document.sql)
    .map(([{ table, columns, toColumns }]) => {
      return { sql: table.sql, columns: sqlOf(columns), ownColumns: sqlOf(toColumns), isGuess: false, table }
    })
}

const uncapturedWarning = ({ sql, columns }: RelatedTable): string =>
  `changes of ${sql} are not captured. If its rows are part of the document, give --child ${quoteForShell(`${sql}(${columns.join(', ')})`)}`

async function proposeCaptureFile(
  pool: pg.Pool,
  parts: DocumentParts,
  { outbox: named, children }: CaptureOptions,
  type: string,
): Promise<ProposedFile> {
  const outbox = await readTable(pool, named).catch(nullIfMissing)
  if (outbox === null || !isOurTable(outbox) || !(await hasIndexOfCapture(pool, outbox.sql)))
    throw new DescribeRefused(
      'the trigger writes to the table that `outboxd migrate --outbox` creates, with its indexes: run that first',
    )
  const fn = `${parts.document.schemaSql}.${captureFunctionName(type)}`
  const other = await readOtherTableOfCapture(pool, fn, outbox.sql)
  if (other !== null)
    throw new DescribeRefused(
      `the function ${fn} captures for the outbox ${other}, and the new one would replace it: name a different type with --type`,
    )
  const tables = parts.paths.map(([{ table }]) => table.sql)
  const writers = await readWritersWithoutInsert(pool, tables, outbox.sql)
  const file = `${nameFile(type)}.capture.sql`
  return { name: file, text: proposeCapture(parts, { type, outbox: outbox.sql, file, children, writers }) }
}

function nullIfMissing(error: unknown): null {
  if (error instanceof DescribeRefused && error.isMissing) return null
  throw error
}

/** True for a table with exactly the columns of migrations/outbox.sql, which needs no outbox.yaml. */
const isOurTable = ({ columns }: CatalogTable): boolean =>
  columns.length === ourColumns.length && columns.every(({ name }) => ourColumns.includes(name))

const toPlainName = (text: string) => text.replace(/[^\p{L}\p{N}_-]+/gu, '_').replace(/^_+(?=.)/, '') || 'record'

/** Names a file other than outbox.yaml. */
function nameFile(type: string): string {
  const plain = toPlainName(type)
  return plain === 'outbox' ? 'outbox-record' : plain
}
