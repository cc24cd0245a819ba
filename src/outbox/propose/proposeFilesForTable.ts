import type pg from 'pg'
import type { Mappings } from '../../mapping/loadMappings.ts'
import { findResourceByNoun, proposeMapping, type TypeToFillIn } from '../../mapping/proposeMapping.ts'
import { type SourceField, sourceFieldOfColumn, sourceFieldsOfPayloads } from '../../mapping/sourceFields.ts'
import type { Resource } from '../../resources.ts'
import { writeYamlLines, writeYamlWithPlaceholders } from '../../yaml/yamlLines.ts'
import { findOutboxTableProblems } from '../findOutboxTableProblems.ts'
import {
  findRowSecurityRemarks,
  findTablesOfView,
  kindNamesWhereRowsMustBeMarked,
  mustRowsBeMarked,
  useTableInsteadClause,
} from '../findTableProblems.ts'
import { findPermissionProblems, findSchemaPermissionProblem } from '../outboxGrants.ts'
import { qualifiedNameSql } from '../outboxTable.ts'
import { parseOutboxFile } from '../readOutboxFile.ts'
import { addTableSchemaIfFound, findTableOfSimilarName, OutboxTableUnusable } from '../readTableShape.ts'
import {
  addKnownValuesFromRows,
  type CatalogTable,
  qualifiedTableSql,
  quoteNameIfNeeded,
  quoteTableIfNeeded,
  readCatalogTable,
  readSamplePayloads,
} from './catalogTable.ts'
import { proposeChangeCaptureCall } from './proposeChangeCaptureCall.ts'
import { type OutboxProposal, proposeOutboxFile, toPathSafeName } from './proposeOutboxFile.ts'
import { proposeSourceQuery } from './proposeSourceQuery.ts'
import { findDocumentTables, tablesOfDocument } from './relatedTables.ts'

interface DescribedFile {
  readonly name: string
  readonly text: string
}

type DescribedTable =
  | { readonly kind: 'missing'; readonly nearest: string | null }
  /** A permission is missing, and `problem` has the grant; or the relation is not a table. */
  | { readonly kind: 'denied'; readonly problem: string }
  | {
      readonly kind: 'described'
      readonly table: string
      readonly files: readonly DescribedFile[]
      readonly warnings: readonly string[]
    }

/** @param endpoint for records of a business table; null chooses orders if the table has lines */
export async function proposeFilesForTable(
  pool: pg.Pool,
  named: TableName,
  existingMappings: Mappings,
  endpoint: Resource | null,
): Promise<DescribedTable> {
  const name = await addTableSchemaIfFound(pool, named)
  const denied = await findSchemaPermissionProblem(pool, name)
  if (denied !== null) return { kind: 'denied', problem: denied }
  const found = await readCatalogTable(pool, qualifiedNameSql(name))
  if (found === null) return { kind: 'missing', nearest: await findTableOfSimilarName(pool, name) }
  if (mustRowsBeMarked(found.kind)) return { kind: 'denied', problem: await viewProblem(pool, found) }
  const table = await addKnownValuesFromRows(pool, found)
  const alone = proposeOutboxFile(table)
  const document = 'column' in alone.payload ? null : await describeDocument(pool, table, endpoint)
  const proposal = document === null ? alone : proposeOutboxFile(table, true)
  const fields = document?.fields ?? (await readFields(pool, table, proposal))
  const types = typesOf(proposal)
  const files = typesToMap(types, proposal, existingMappings).map((type) => ({
    name: fileName(typeof type === 'string' ? type : table.name),
    text: writeYamlLines(proposeMapping(type, fields, document ?? { endpoint, sql: null })),
  }))
  const warnings = types.filter((type) => existingMappings.has(type)).map(mappedWarning)
  const described = { kind: 'described', table: `${table.schema}.${table.name}` } as const
  if (document?.capture != null && !alone.hasState) {
    const capture = { name: fileName(table.name).replace(/yaml$/, 'capture.sql'), text: document.capture }
    return { ...described, files: [...files, capture], warnings: [...document.warnings, ...warnings] }
  }
  return {
    ...described,
    files: [{ name: 'outbox.yaml', text: writeOutboxFile(table, proposal) }, ...files],
    warnings: [
      ...proposal.warnings,
      ...(document?.warnings ?? []),
      ...warnings,
      ...(await findWarnings(pool, proposal)),
    ],
  }
}

/** Explains why views are not described: a view has no keys, and may be slow. */
async function viewProblem(pool: pg.Pool, { kind, ...table }: CatalogTable): Promise<string> {
  const tables = kind === 'f' ? [] : await findTablesOfView(pool, qualifiedTableSql(table))
  return `${table.schema}.${table.name} is ${kindNamesWhereRowsMustBeMarked[kind]}, for which outboxd proposes no files: ${useTableInsteadClause(kind, tables)}. docs/start/outbox.md says what a view needs`
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
  /** SQL that installs change capture; null for a table without lines, which is read directly. */
  readonly capture: string | null
}

/** @returns null for a table without lines and customer */
async function describeDocument(
  pool: pg.Pool,
  table: CatalogTable,
  asked: Resource | null,
): Promise<DescribedDocument | null> {
  const document = await findDocumentTables(pool, table)
  if (document === null) return null
  const { lines } = document
  const endpoint = asked ?? findResourceByNoun(lines === null ? 'transaction' : 'order')
  const source = proposeSourceQuery(document, endpoint === findResourceByNoun('order'))
  const { rows } = await pool.query<{ role: string }>('select current_user as role')
  const role = rows[0]?.role ?? ''
  const hidden = tablesOfDocument(document).filter(({ columns }) => columns.some(({ isReadable }) => !isReadable))
  const tables = hidden.map(quoteTableIfNeeded).join(', ')
  const grant = `${role} may not read ${tables}. The owner grants it with:\ngrant select on ${tables} to ${quoteNameIfNeeded(role)};`
  return {
    ...{ ...source, endpoint },
    warnings: [...source.warnings, ...(hidden.length === 0 ? [] : [grant])],
    capture: lines && proposeChangeCaptureCall(document, lines, toPathSafeName(table.name), role),
  }
}

async function readFields(pool: pg.Pool, table: CatalogTable, { payload }: OutboxProposal): Promise<SourceField[]> {
  if ('columns' in payload)
    return [...payload.columns].map(([name, { type, exactType }]) => sourceFieldOfColumn(name, type, exactType))
  const { name, type, isReadable } = payload.column
  return type === 'bytea' || !isReadable ? [] : sourceFieldsOfPayloads(await readSamplePayloads(pool, table, name))
}

/** The types that rows have; empty if there are many or none is known. */
const typesOf = ({ type }: OutboxProposal): readonly string[] =>
  'constant' in type ? [type.constant] : (type.column.knownValues ?? [])

/** Chooses the types that get a mapping file: those without one. If none is known, one file to copy. */
function typesToMap(
  types: readonly string[],
  { type }: OutboxProposal,
  existingMappings: Mappings,
): readonly (string | TypeToFillIn)[] {
  if ('constant' in type || types.length > 0) return types.filter((each) => !existingMappings.has(each))
  const { name } = type.column
  return [
    {
      fillIn: `the value that such rows have in "${name}", in a file like this for each. If "${name}" is not a type, write type: { constant: … } in outbox.yaml`,
    },
  ]
}

const mappedWarning = (type: string) =>
  `MAPPINGS_DIR has a mapping file of the type "${type}" already, so none is proposed for it. \`outboxd map --outbox ID\` shows the request that it makes. If the file is for other records, give these rows another type in outbox.yaml`

/** Finds what `check` would report about outbox.yaml once it is filled in. */
async function findWarnings(pool: pg.Pool, { lines, hasId }: OutboxProposal): Promise<string[]> {
  const { table: described, problems } = parseOutboxFile('outbox.yaml', writeYamlWithPlaceholders(lines))
  if (described === null) return problems.map(({ message }) => message)
  if (!hasId) return findPermissionProblems(pool, described)
  try {
    const found = await findOutboxTableProblems(pool, described)
    return [
      ...found,
      ...(await findRowSecurityRemarks(pool, qualifiedNameSql(await addTableSchemaIfFound(pool, described)))),
    ]
  } catch (error) {
    if (error instanceof OutboxTableUnusable) return error.message.split('\n')
    throw error
  }
}

const fileName = (type: string) => {
  const plain = type.replace(/[^A-Za-z0-9_.-]+/g, '-').replace(/^[.-]+/, '') || 'record'
  return `${plain === 'outbox' ? 'outbox-record' : plain}.yaml`
}

/** Without quotes. */
interface TableName {
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
