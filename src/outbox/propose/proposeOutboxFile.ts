import { normalizeName } from '../../mapping/usualNames.ts'
import { quoteYaml, type YamlLine } from '../../yaml/yamlLines.ts'
import type { CatalogColumn, CatalogTable } from './catalogTable.ts'
import { chooseIdColumn } from './chooseIdColumn.ts'
import { chooseStateColumn, findStatusColumn, type RowCount, type StateChoice } from './chooseStateColumn.ts'
import { chooseWrittenColumns, isGivenUpTime } from './chooseWrittenColumns.ts'
import {
  columnNames,
  findColumnByName,
  findMatchingValue,
  isNameAboutSending,
  statusValues,
  textPayloadNames,
} from './columnNames.ts'
import {
  findBusinessStatuses,
  findSentStatusCandidates,
  findWorkflowColumn,
  isTextColumn,
  type ValuesOfColumn,
} from './findSentColumnCandidates.ts'

export interface OutboxProposal {
  readonly lines: readonly YamlLine[]
  readonly warnings: readonly string[]
  readonly type: { readonly constant: string } | { readonly column: string }
  readonly payload: { readonly column: CatalogColumn } | { readonly columns: ReadonlyMap<string, CatalogColumn> }
  readonly hasId: boolean
  readonly hasState: boolean
}

/** Finds the columns whose values a proposal depends on. */
export function findColumnsToReadValuesOf({ columns, kind }: CatalogTable): string[] {
  const payload = findPayload(columns)
  const asked = [
    findStatusColumn(columns, payload !== null),
    findWorkflowColumn(columns),
    findType(columns),
    ...findSentStatusCandidates(columns, kind === 'r' || kind === 'p').slice(0, sentWordColumnsMax),
  ]
  return [...new Set(asked.flatMap((column) => (column !== null && column.allowed === null ? [column.name] : [])))]
}

/** Each column takes one query. */
const sentWordColumnsMax = 30

export function proposeOutboxFile(
  table: CatalogTable,
  valuesOf: ValuesOfColumn,
  rows: RowCount,
  hasSource = false,
): OutboxProposal {
  const { columns } = table
  const document = findPayload(columns)
  const isOutbox = document !== null
  const id = chooseIdColumn(table)
  const type = isOutbox ? findType(columns) : null
  const key = findColumnByName(columns, columnNames.key, isKey)
  const createdAt = findColumnByName(columns, columnNames.createdAt, isCreatedAt)
  const choose = (read: readonly (CatalogColumn | null)[]) => {
    const free = { ...table, columns: columns.filter((column) => !read.includes(column)) }
    const state = chooseStateColumn(free, isOutbox, valuesOf, rows)
    const writes = chooseWrittenColumns(free, isOutbox, state)
    return { state, writes, written: [...(state.column === null ? [] : [state.column.name]), ...writes.columns] }
  }
  const read = [id.column, type, key, createdAt, document]
  const first = choose(read)
  const isAllWritten = first.written.length === columns.length
  const { state, writes, written } = isAllWritten ? choose([...read, columns[0] ?? null]) : first
  const other = columns.find(({ name }) => !written.includes(name))
  const typeName = pathSafeName(table.name)
  const payload = document === null ? { columns: payloadColumns(columns, written) } : ({ column: document } as const)
  return {
    hasId: id.column !== null,
    hasState: state.column !== null,
    payload,
    type: type === null ? { constant: typeName } : { column: type.name },
    warnings: [...id.warnings, ...state.warnings, ...writes.warnings],
    lines: [
      { text: `schema: ${quoteYaml(table.schema)}` },
      { text: `table: ${quoteYaml(table.name)}` },
      ...id.lines(other?.name ?? ''),
      ...orderLines(table, id.column, state, isOutbox),
      type === null
        ? {
            text: `type: { constant: ${quoteYaml(typeName)} }`,
            comment: 'the type of every row: one mapping file',
          }
        : { text: `type: ${quoteYaml(type.name)}`, comment: 'one mapping file for each value' },
      keyEntry(key),
      ...createdAtLines(createdAt, columns, written),
      ...(hasSource
        ? [{ text: '', comment: 'payload: the query in the mapping file reads it' }]
        : payloadLines(payload)),
      ...filterLines(table, isOutbox, state, valuesOf),
      ...state.lines,
      ...writes.lines,
    ],
  }
}

/** Excludes a time that is empty until the row is sent, because it is not the row's creation. */
const isCreatedAt = ({ type, name, notNull }: CatalogColumn) =>
  /^(timestamp with(out)? time zone|date|bigint)$/.test(type) && (notNull || !isNameAboutSending(name))
const isKey = ({ type }: CatalogColumn) => !/^(jsonb?|xml|bytea|boolean|point)$|\[\]$/.test(type)

/** Changes a name so that paths need no quotes for it. */
export const pathSafeName = (name: string) => name.replace(/[^A-Za-z0-9_-]+/g, '_').replace(/^_+(?=.)/, '') || 'record'

function findPayload(columns: readonly CatalogColumn[]): CatalogColumn | null {
  const holds = ({ type, name }: CatalogColumn) =>
    /^jsonb?$/.test(type) ||
    (/^(text|character varying|bytea)$/.test(type) && textPayloadNames.includes(normalizeName(name)))
  return findColumnByName(columns, columnNames.payload, holds)
}

const findType = (columns: readonly CatalogColumn[]) =>
  findColumnByName(columns, columnNames.type, (column) => isTextColumn(column) || column.allowed !== null)

/** Rows are ordered by the id, so one from a sequence is best. */
function orderLines(
  table: CatalogTable,
  id: CatalogColumn | null,
  { column, candidates }: StateChoice,
  isOutbox: boolean,
): YamlLine[] {
  if (id?.isDrawn && column === null && candidates.length === 0 && isOutbox && table.kind === 'r')
    return [
      {
        text: `sequence: ${quoteYaml(id.name)}`,
        comment:
          'correct if rows are only added, and the database draws the number at the insert; otherwise remove this line',
      },
    ]
  const time = findColumnByName(
    table.columns,
    columnNames.createdAt,
    (each) => /^timestamp/.test(each.type) && each.notNull,
  )
  if (id === null || id.isDrawn || time === null) return []
  return [{ text: `order: ${quoteYaml(time.name)}`, comment: `"${id.name}" need not grow with time` }]
}

function keyEntry(key: CatalogColumn | null): YamlLine {
  if (key === null)
    return {
      text: '',
      comment: 'key: a column by which records are sent in order. None of the columns looks like one: no order.',
    }
  return {
    text: `key: ${quoteYaml(key.name)}`,
    comment: 'records of one key are sent in order; without this line no order is kept',
  }
}

/** Asks the user for the creation time if no name suggests a column. */
function createdAtLines(
  column: CatalogColumn | null,
  columns: readonly CatalogColumn[],
  written: readonly string[],
): YamlLine[] {
  if (column === null) {
    const times = columns.filter(
      (each) => /^timestamp/.test(each.type) && isCreatedAt(each) && !written.includes(each.name),
    )
    if (times.length === 0)
      return [
        {
          text: '',
          comment: `created_at: none of the columns is a time that could be the row’s. ${lostWithoutCreatedAt}`,
        },
      ]
    return [
      {
        text: 'created_at:',
        fillIn: `the time at which the row was made, which must never change; one of: ${times.map((each) => each.name).join(', ')}. To go without, remove this line. ${lostWithoutCreatedAt}`,
      },
    ]
  }
  const name = quoteYaml(column.name)
  if (column.type === 'bigint')
    return [
      {
        text: `created_at: { column: ${name}, unit: milliseconds }`,
        comment: 'or seconds, microseconds; it must never change',
      },
    ]
  if (column.type === 'timestamp without time zone')
    return [
      { text: `created_at: { column: ${name}, timezone: UTC }`, comment: 'or Europe/Berlin; it must never change' },
    ]
  return [{ text: `created_at: ${name}`, comment: 'it must never change' }]
}

const lostWithoutCreatedAt =
  'Without it an edited row and another row of the same id look alike, no start at a date is possible (adopt --start since:), and ages count from the capture.'

/** Returns all columns that outboxd does not write, under names that need no quotes in paths. */
function payloadColumns(columns: readonly CatalogColumn[], written: readonly string[]): Map<string, CatalogColumn> {
  const payload = new Map<string, CatalogColumn>()
  for (const column of columns) {
    if (written.includes(column.name)) continue
    const name = pathSafeName(column.name)
    payload.set(payload.has(name) ? column.name : name, column)
  }
  return payload
}

function payloadLines(payload: OutboxProposal['payload']): YamlLine[] {
  if ('column' in payload) {
    const { name, type } = payload.column
    const hint = type === 'bytea' ? 'bytea, of UTF-8: else { column: …, encoding: … }' : type
    return [{ text: `payload: ${quoteYaml(name)}`, comment: hint }]
  }
  return [
    { text: 'payload:' },
    { text: '  columns:', comment: 'name in the payload: column' },
    ...[...payload.columns].map(([name, column]) => ({
      text: `    ${quoteYaml(name)}: ${quoteYaml(column.name)}`,
      comment: column.exactType,
    })),
  ]
}

/** Leaves out rows that were given up. In a business table only the user knows which rows to send. */
function filterLines(table: CatalogTable, isOutbox: boolean, state: StateChoice, valuesOf: ValuesOfColumn): YamlLine[] {
  const givenUp = isOutbox && state.column?.type !== 'boolean' ? table.columns.find(isGivenUpTime) : undefined
  if (givenUp !== undefined && state.column !== null)
    return [
      {
        text: `filter: ${quoteYaml(`${quoteFilter(givenUp.name)} is null`)}`,
        comment: 'leaves out rows that were given up',
      },
    ]
  const lifecycle = isOutbox ? null : findWorkflowColumn(table.columns.filter((column) => column !== state.column))
  if (lifecycle === null || lifecycle === state.column) return []
  const words = lifecycle.allowed ?? valuesOf(lifecycle.name) ?? []
  if (state.candidates.includes(lifecycle) && words.length > 0 && findBusinessStatuses(lifecycle, words).length === 0)
    return []
  const seen = words.length > 0 ? ` The column has ${words.map((word) => `'${word}'`).join(', ')}` : ''
  const example = `${quoteFilter(lifecycle.name)} = '${exampleWord(words) ?? '…'}'`
  return [
    {
      text: 'filter:',
      fillIn: `a condition such as ${example}: which rows are to be sent? For all of them remove this line.${seen}`,
    },
  ]
}

const endWords = [statusValues.queued, statusValues.completed, statusValues.failed, statusValues.rejected].flat()

/** Chooses a likely word of rows that are to be sent. */
function exampleWord(words: readonly string[]): string | undefined {
  const left = words.filter((word) => findMatchingValue([word], endWords) === null)
  return (
    findMatchingValue(left, ['released', 'approved', 'confirmed', 'freigegeben', ...statusValues.new]) ??
    left.at(1) ??
    left[0]
  )
}

const quoteFilter = (name: string) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name}"`)
