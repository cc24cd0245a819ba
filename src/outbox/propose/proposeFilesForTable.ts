import type pg from 'pg'
import { findBodyWarnings } from '../../mapping/findBodyWarnings.ts'
import type { Mappings } from '../../mapping/loadMappings.ts'
import { endpointOfNoun, proposeMapping, type UntoldType } from '../../mapping/proposeMapping.ts'
import { readMapping } from '../../mapping/readMapping.ts'
import { type SourceField, sourceFieldOfColumn, sourceFieldsOfPayloads } from '../../mapping/sourceFields.ts'
import { type Database, type Sessions, withSearchPathOfRole } from '../../postgres/database.ts'
import type { Resource } from '../../resources.ts'
import { writeYamlLines, writeYamlWithTrialValues } from '../../yaml/yamlLines.ts'
import { countWaitingRows } from '../backlog.ts'
import { findOutboxTableProblems, findTableRemarks } from '../findOutboxTableProblems.ts'
import { findPermissionProblems, findSchemaPermissionProblem } from '../findPermissionProblems.ts'
import { findRowSecurityProblems } from '../findTableProblems.ts'
import { qualifiedName } from '../outboxTable.ts'
import { readOutboxFile } from '../readOutboxFile.ts'
import {
  findTableOfSimilarName,
  OutboxTableUnusable,
  readTableShape,
  resolveTableSchema,
  tableHasClientCode,
} from '../readTableShape.ts'
import {
  type CatalogTable,
  distinctValuesMax,
  qualifiedTable,
  readCatalogTable,
  readSamplePayloads,
} from './catalogTable.ts'
import type { RowCount } from './chooseStateColumn.ts'
import type { ValuesOfColumn } from './findSentColumnCandidates.ts'
import { proposeChangeCaptureCall } from './proposeChangeCaptureCall.ts'
import { type OutboxProposal, pathSafeName, proposeOutboxFile } from './proposeOutboxFile.ts'
import { proposeSourceQuery } from './proposeSourceQuery.ts'
import { createValuesLookup, readOrWarn, readValuesByColumn, type ValuesByColumn } from './readValuesByColumn.ts'
import { findDocumentTables, tablesOfDocument } from './relatedTables.ts'
import { quoteName, quoteTable } from './sqlNames.ts'

export interface DescribedFile {
  readonly name: string
  readonly text: string
}

export type DescribedTable =
  | { readonly kind: 'missing'; readonly nearest: string | null }
  /** A right is missing; `problem` has the grant. */
  | { readonly kind: 'denied'; readonly problem: string }
  | {
      readonly kind: 'described'
      readonly table: string
      readonly files: readonly DescribedFile[]
      readonly warnings: readonly string[]
    }

/** A column with more values is not a list of types. */
const typesMax = 5

/**
 * Reads a table and proposes its files.
 *
 * @param endpoint for records of a business table; null for orders if the table has lines
 */
export async function proposeFilesForTable(
  pool: pg.Pool,
  named: TableName,
  existingMappings: Mappings,
  endpoint: Resource | null,
): Promise<DescribedTable> {
  const name = await resolveTableSchema(pool, named)
  const qualified = qualifiedName(name)
  const denied = await findSchemaPermissionProblem(pool, name)
  if (denied !== null) return { kind: 'denied', problem: denied }
  const table = await readCatalogTable(pool, qualified)
  if (table === null) return { kind: 'missing', nearest: await findTableOfSimilarName(pool, name) }
  const unseen: string[] = []
  // A view, or a type of the ERP, may need the role's search path.
  const db = (await tableHasClientCode(pool, qualifiedTable(table))) ? withSearchPathOfRole(pool) : pool
  const words = await readValuesByColumn(db, table, unseen)
  const rows = await countRows(db, table, unseen)
  const alone = proposeOutboxFile(table, createValuesLookup(words), rows)
  const document = 'column' in alone.payload ? null : await describeDocument(db, table, endpoint, unseen)
  const proposal = document === null ? alone : proposeOutboxFile(table, createValuesLookup(words), rows, true)
  const types = typesOf(table, proposal, words)
  const fields = document?.fields ?? (await readFields(db, table, proposal, unseen))
  const mappings = typesToMap(types, proposal, existingMappings)
    .map((type) => ({
      name: fileName(typeof type === 'string' ? type : table.name),
      proposed: proposeMapping(type, fields, document ?? { endpoint, sql: null }),
    }))
    .map(({ name, proposed: { lines, warnings } }) => ({ name, text: writeYamlLines(lines), warnings }))
  const ofMappings = [
    ...('what' in types ? [] : findMappedWarnings(types, existingMappings, fields)),
    ...new Set(mappings.flatMap(({ warnings }) => warnings)),
    ...mappings.flatMap(({ name, text }) => findMappingWarnings(name, text)),
  ]
  const described = { kind: 'described', table: `${table.schema}.${table.name}` } as const
  const files = mappings.map(({ name, text }) => ({ name, text }))
  if (document?.capture != null && !alone.hasState) {
    const capture = {
      name: fileName(table.name).replace(/yaml$/, 'capture.sql'),
      text: document.capture(createValuesLookup(words)),
    }
    return { ...described, files: [...files, capture], warnings: [...unseen, ...document.warnings, ...ofMappings] }
  }
  return {
    ...described,
    files: [{ name: 'outbox.yaml', text: writeOutboxFile(table, proposal) }, ...files],
    warnings: [
      ...unseen,
      ...proposal.warnings,
      ...(document?.warnings ?? []),
      ...ofMappings,
      ...(await findWarnings(pool, table, proposal)),
    ],
  }
}

const writeOutboxFile = (table: CatalogTable, { lines }: OutboxProposal): string =>
  writeYamlLines([
    { text: '# yaml-language-server: $schema=./outbox.schema.json' },
    {
      text: '',
      comment: `Proposed by outboxd describe for ${table.schema}.${table.name}. docs/start/outbox.md says what each line means.`,
    },
    ...lines,
  ])

interface DescribedDocument {
  readonly endpoint: Resource
  readonly sql: readonly string[]
  readonly fields: readonly SourceField[]
  readonly warnings: readonly string[]
  /** The call of change capture; null for a table without lines, which is read directly. */
  readonly capture: ((words: ValuesOfColumn) => string) | null
}

/** @returns null for a table without lines and lookups */
async function describeDocument(
  db: Database,
  table: CatalogTable,
  asked: Resource | null,
  unseen: string[],
): Promise<DescribedDocument | null> {
  const document = await readOrWarn('which tables it belongs to', unseen, () => findDocumentTables(db, table))
  if (document == null) return null
  const endpoint = asked ?? endpointOfNoun(document.lines === null ? 'transaction' : 'order')
  const source = proposeSourceQuery(document, endpoint === endpointOfNoun('order'))
  const { rows } = await db.query<{ role: string }>('select current_user as role')
  const role = rows[0]?.role ?? ''
  const hidden = tablesOfDocument(document).filter(({ columns }) => columns.some(({ isReadable }) => !isReadable))
  const tables = hidden.map(quoteTable).join(', ')
  if (hidden.length > 0)
    unseen.push(
      `${role} must not read ${tables}; the owner grants it so:\ngrant select on ${tables} to ${quoteName(role)};`,
    )
  else await readOrWarn('what the proposed query reads', unseen, () => db.query(source.sql.join('\n'), [[]]))
  const { lines } = document
  const type = pathSafeName(table.name)
  return {
    ...source,
    endpoint,
    capture: lines === null ? null : (words) => proposeChangeCaptureCall(document, lines, type, words, role),
  }
}

/** Counts rows for `state: none`. Null if our role may not. */
async function countRows(pool: Sessions, table: CatalogTable, warnings: string[]): Promise<RowCount> {
  if (!table.columns.some(({ isReadable }) => isReadable)) return null
  const all = { from: qualifiedTable(table), waits: 'true', createdAt: 'null::text' }
  return (await readOrWarn('how many rows there are', warnings, () => countWaitingRows(pool, all))) ?? null
}

function typesOf(
  { columns }: CatalogTable,
  { type }: OutboxProposal,
  words: ValuesByColumn,
): readonly string[] | UntoldType {
  if ('constant' in type) return [type.constant]
  const column = columns.find(({ name }) => name === type.column)
  const types = column?.allowed ?? words.get(type.column)
  if (types === undefined) return untoldType(type.column, ', whose values could not be read')
  if (types === null)
    return untoldType(
      type.column,
      `, in a file like this for each: there are more than ${distinctValuesMax}. If "${type.column}" is not a type, write type: { constant: … } in outbox.yaml`,
    )
  return types.length === 0 ? untoldType(type.column, ': no row has one') : types
}

const untoldType = (column: string, why: string): UntoldType => ({
  what: `the value that such rows have in "${column}"${why}`,
})

/** Chooses the types that get a file: types without a file, or one type to copy if there are many. */
function typesToMap(
  types: readonly string[] | UntoldType,
  { type }: OutboxProposal,
  existingMappings: Mappings,
): readonly (string | UntoldType)[] {
  if ('what' in types) return [types]
  const left = types.filter((each) => !existingMappings.has(each))
  if (left.length <= typesMax || 'constant' in type) return left
  return [untoldType(type.column, `, in a file like this for each of them: ${left.join(', ')}`)]
}

async function readFields(
  pool: Sessions,
  table: CatalogTable,
  { payload }: OutboxProposal,
  warnings: string[],
): Promise<SourceField[] | null> {
  if ('columns' in payload)
    return [...payload.columns].map(([name, { type, exactType }]) => sourceFieldOfColumn(name, type, exactType))
  const { name, type, isReadable } = payload.column
  if (type === 'bytea' || !isReadable) return null
  const payloads = await readOrWarn(`what "${name}" holds`, warnings, () => readSamplePayloads(pool, table, name))
  const fields = sourceFieldsOfPayloads(payloads ?? [])
  return fields.length === 0 ? null : fields
}

async function findWarnings(pool: pg.Pool, table: CatalogTable, { lines, hasId }: OutboxProposal): Promise<string[]> {
  const { table: described, problems } = readOutboxFile('outbox.yaml', writeYamlWithTrialValues(lines))
  if (described === null) return problems.map(({ message }) => message)
  const rights = await findPermissionProblems(pool, described)
  if (rights.length > 0 || !hasId) {
    const qualified = qualifiedTable(table)
    const policies = await findRowSecurityProblems(pool, qualified, described)
    return [...rights, ...policies.map((problem) => `the table ${qualified} ${problem}`)]
  }
  try {
    const found = await findOutboxTableProblems(pool, described)
    return [...found, ...(await findTableRemarks(pool, described, await readTableShape(pool, described)))]
  } catch (error) {
    if (error instanceof OutboxTableUnusable) return error.message.split('\n')
    throw error
  }
}

function findMappingWarnings(name: string, text: string): string[] {
  const { mapping } = readMapping(name, text)
  return mapping === null ? [] : findBodyWarnings(mapping).map((clause) => `${name}: ${clause}`)
}

const fileName = (type: string) => {
  const plain = type.replace(/[^A-Za-z0-9_.-]+/g, '-').replace(/^[.-]+/, '') || 'record'
  return `${plain === 'outbox' ? 'outbox-record' : plain}.yaml`
}

/** Warns of each type that has a mapping file already, and of its fields that these rows lack. */
function findMappedWarnings(
  types: readonly string[],
  existingMappings: Mappings,
  fields: readonly SourceField[] | null,
): string[] {
  return types.flatMap((type) => {
    const mapping = existingMappings.get(type)
    if (mapping === undefined) return []
    const read = mapping.fields.flatMap(({ from }) => (from === null ? [] : [firstStep(from)]))
    const has = new Set(fields?.map(({ path }) => firstStep(path)))
    const missing = fields === null ? [] : [...new Set(read)].filter((step) => !has.has(step))
    const lacks =
      missing.length === 0
        ? '. `outboxd map --outbox ID` shows the request that it makes'
        : `. It reads ${missing.join(', ')}, which the payload of these rows lacks. If the file is for other records, give these rows another type in outbox.yaml`
    return [`MAPPINGS_DIR has a mapping file of the type "${type}" already, so none is proposed for it${lacks}`]
  })
}

const firstStep = (path: string) => path.split(/[.[]/, 1)[0] ?? ''

/** Without quotes. */
export interface TableName {
  readonly schema: string | null
  readonly table: string
}

export function parseTableName(text: string): TableName | null {
  const found = /^(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)$/.exec(text.trim())
  if (found === null) return null
  const [, schema, table = ''] = found
  return { schema: schema === undefined ? null : unquote(schema), table: unquote(table) }
}

const unquote = (part: string) => (part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part)
