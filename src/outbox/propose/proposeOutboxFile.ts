import { chooseByUsualName, isUsualName, normalizeName } from '../../mapping/usualNames.ts'
import { quoteForYaml, type YamlLine } from '../../yaml/yamlLines.ts'
import {
  type CatalogColumn,
  type CatalogTable,
  isIntegerOrNumericColumn,
  isTextColumn,
  isTimeColumn,
  qualifiedTableSql,
  quoteNameIfNeeded,
} from './catalogTable.ts'
import { chooseStateColumn, type StateChoice } from './chooseStateColumn.ts'
import {
  chooseExampleValue,
  findDocumentStatusColumn,
  findSentColumnCandidates,
  findValuesNotAboutSending,
  isNameAboutSending,
} from './sentColumns.ts'

export interface OutboxProposal {
  readonly lines: readonly YamlLine[]
  readonly warnings: readonly string[]
  readonly type: { readonly constant: string } | { readonly column: CatalogColumn }
  readonly payload: { readonly column: CatalogColumn } | { readonly columns: ReadonlyMap<string, CatalogColumn> }
  readonly hasId: boolean
  readonly hasState: boolean
}

/** @param hasSource true if the query in the mapping file reads the payload */
export function proposeOutboxFile(table: CatalogTable, hasSource = false): OutboxProposal {
  const { columns } = table
  const document = findPayload(columns)
  const isOutbox = document !== null
  const id = chooseIdColumn(table)
  const type = isOutbox ? chooseByUsualName(columns.filter(isTextOrClosed), 'type') : null
  const keys = columns.filter((each) => !/^(jsonb?|xml|bytea|boolean|point)$|\[\]$/.test(each.type))
  const key = chooseByUsualName(keys, 'key') ?? chooseByUsualName(keys, 'customer')
  const createdAt = chooseByUsualName(columns.filter(isCreatedAt), 'createdAt')
  const read = [id.column, type, key, createdAt, document]
  const free = { ...table, columns: columns.filter((column) => !read.includes(column)) }
  const state = chooseStateColumn(free, isOutbox)
  const writes = chooseWrittenColumns(free, isOutbox, state)
  const written = [...(state.column === null ? [] : [state.column]), ...writes.map(({ column }) => column)]
  const left = columns.filter((column) => !written.includes(column))
  const typeName = toPathSafeName(table.name)
  const payload = document === null ? { columns: namesInPayload(left) } : ({ column: document } as const)
  return {
    hasId: id.isNamed,
    hasState: state.column !== null,
    payload,
    type: type === null ? { constant: typeName } : { column: type },
    warnings: [...id.warnings, ...state.warnings],
    lines: [
      { text: `schema: ${quoteForYaml(table.schema)}` },
      { text: `table: ${quoteForYaml(table.name)}` },
      ...id.lines,
      ...orderLines(columns, id.column),
      type === null
        ? { text: `type: { constant: ${quoteForYaml(typeName)} }`, comment: 'the type of every row: one mapping file' }
        : { text: `type: ${quoteForYaml(type.name)}`, comment: 'one mapping file for each value' },
      key === null
        ? {
            text: '',
            comment:
              'key: a column by which records are sent in order. No column looks like a key, so no order is kept.',
          }
        : {
            text: `key: ${quoteForYaml(key.name)}`,
            comment: 'records of one key are sent in order; without this line no order is kept',
          },
      ...createdAtLines(createdAt, left),
      ...(hasSource
        ? [{ text: '', comment: 'payload: the query in the mapping file reads it' }]
        : payloadLines(payload)),
      ...filterLines(table, isOutbox, state),
      ...state.lines,
      ...(writes.length > 0 ? [{ text: 'write:' }, ...writes.map(({ line }) => line)] : []),
    ],
  }
}

const isTextOrClosed = (column: CatalogColumn) => isTextColumn(column) || column.isClosed

/** Replaces characters in a name, so that paths need no quotes for it. */
export const toPathSafeName = (name: string) =>
  name.replace(/[^A-Za-z0-9_-]+/g, '_').replace(/^_+(?=.)/, '') || 'record'

function findPayload(columns: readonly CatalogColumn[]): CatalogColumn | null {
  const isText = ({ type, name }: CatalogColumn) =>
    /^(text|character varying|bytea)$/.test(type) && isUsualName(name, 'textPayload')
  return chooseByUsualName(
    columns.filter((each) => /^jsonb?$/.test(each.type) || isText(each)),
    'payload',
  )
}

interface IdChoice {
  readonly column: CatalogColumn
  /** False if the user must name the id. */
  readonly isNamed: boolean
  readonly lines: readonly YamlLine[]
  readonly warnings: readonly string[]
}

/** Chooses the column that identifies rows: unique and not null, by the catalog. */
function chooseIdColumn(table: CatalogTable): IdChoice {
  const { name, columns, primaryKey, kind, hasHeirs } = table
  const certain = hasHeirs ? [] : columns.filter((each) => each.isUnique && each.notNull)
  const primary = certain.find((each) => primaryKey.length === 1 && each.name === primaryKey[0])
  const found = primary ?? chooseByUsualName(certain, 'id') ?? certain[0]
  if (found !== undefined) {
    const why = found === primary ? 'the primary key' : 'unique and not null'
    const line = { text: `id: ${quoteForYaml(found.name)}`, comment: `${found.type}, ${why}` }
    return { column: found, isNamed: true, warnings: [], lines: [line] }
  }
  const sent = findSentColumnCandidates(columns)
  const likely =
    chooseByUsualName(columns, 'id') ?? columns.find((each) => !sent.includes(each)) ?? (columns[0] as CatalogColumn)
  const id = quoteForYaml(likely.name)
  if (kind !== 'r' || hasHeirs) {
    const promise = `promised, if no two rows can ever have one id in "${likely.name}"`
    return {
      ...{ column: likely, isNamed: true },
      warnings: [
        `"${name}" has partitions or inheriting tables, so no index can show that an id is unique. If you are sure, write id_unique: promised. Of two rows with one id, the second would never be sent`,
      ],
      lines: [
        { text: `id: ${id}`, comment: likely.type },
        { text: 'id_unique:', placeholder: 'id_unique: promised', fillIn: promise },
      ],
    }
  }
  const names = columns.map((each) => each.name).join(', ')
  const fillIn = `the column that identifies a row for ever (see the warning); one of: ${names}`
  return {
    ...{ column: likely, isNamed: false },
    warnings: [
      `"${name}" has no column that is unique and not null, and two rows of one id would count as one. Make a column unique and not null, or add one: alter table ${qualifiedTableSql(table)} add column outbox_id bigint generated always as identity unique (this locks and rewrites the table)`,
    ],
    lines: [{ text: 'id:', placeholder: `id: ${id}`, fillIn }],
  }
}

/** Proposes a time as order if the id is a uuid or a text, because such ids need not grow. */
function orderLines(columns: readonly CatalogColumn[], id: CatalogColumn): YamlLine[] {
  const times = columns.filter((each) => /^timestamp/.test(each.type) && each.notNull)
  const time = chooseByUsualName(times, 'createdAt')
  if (isIntegerOrNumericColumn(id) || time === null) return []
  return [{ text: `order: ${quoteForYaml(time.name)}`, comment: `"${id.name}" need not grow with time` }]
}

/** Excludes a time that is NULL until the row is sent, because it is not the creation time. */
const isCreatedAt = (column: CatalogColumn) =>
  (isTimeColumn(column) || column.type === 'bigint') && (column.notNull || !isNameAboutSending(column.name))

function createdAtLines(column: CatalogColumn | null, left: readonly CatalogColumn[]): YamlLine[] {
  if (column === null) {
    const times = left.filter((each) => /^timestamp/.test(each.type) && isCreatedAt(each)).map(({ name }) => name)
    if (times.length === 0)
      return [{ text: '', comment: `created_at: no column is a time of the row. ${lostWithoutCreatedAt}` }]
    return [
      {
        text: 'created_at:',
        fillIn: `the time at which the row was made, which must never change; one of: ${times.join(', ')}. To go without, remove this line. ${lostWithoutCreatedAt}`,
      },
    ]
  }
  const name = quoteForYaml(column.name)
  const [text, hint] =
    column.type === 'bigint'
      ? [`{ column: ${name}, unit: milliseconds }`, 'or seconds, microseconds; ']
      : column.type === 'timestamp without time zone'
        ? [`{ column: ${name}, timezone: UTC }`, 'or Europe/Berlin; ']
        : [name, '']
  return [{ text: `created_at: ${text}`, comment: `${hint}it must never change` }]
}

const lostWithoutCreatedAt =
  'Without it another row of a known id counts as the row that was sent, no start at a date is possible (adopt --start since:), and ages count from the capture.'

function namesInPayload(columns: readonly CatalogColumn[]): Map<string, CatalogColumn> {
  const payload = new Map<string, CatalogColumn>()
  for (const column of columns) {
    const name = toPathSafeName(column.name)
    payload.set(payload.has(name) ? column.name : name, column)
  }
  return payload
}

function payloadLines(payload: OutboxProposal['payload']): YamlLine[] {
  if ('column' in payload) {
    const { name, type } = payload.column
    const hint = type === 'bytea' ? 'bytea, of UTF-8: else { column: …, encoding: … }' : type
    return [{ text: `payload: ${quoteForYaml(name)}`, comment: hint }]
  }
  return [
    { text: 'payload:' },
    { text: '  columns:', comment: 'name in the payload: column' },
    ...[...payload.columns].map(([name, column]) => ({
      text: `    ${quoteForYaml(name)}: ${quoteForYaml(column.name)}`,
      comment: column.exactType,
    })),
  ]
}

const isGivenUpTime = (column: CatalogColumn) =>
  chooseByUsualName([column], 'givenUpAt') !== null && !column.notNull && /^timestamp/.test(column.type)

/** Proposes a filter against rows that were given up. In a business table, asks the user which rows to send. */
function filterLines({ columns }: CatalogTable, isOutbox: boolean, state: StateChoice): YamlLine[] {
  if (isOutbox) {
    const givenUp = state.column === null ? undefined : columns.find(isGivenUpTime)
    const filter = givenUp && quoteForYaml(`${quoteNameIfNeeded(givenUp.name)} is null`)
    return filter === undefined ? [] : [{ text: `filter: ${filter}`, comment: 'leaves out rows that were given up' }]
  }
  const workflow = findDocumentStatusColumn(columns.filter((column) => column !== state.column))
  if (workflow === null) return []
  const words = workflow.knownValues ?? []
  if (state.candidates.includes(workflow) && words.length > 0 && findValuesNotAboutSending(words).length === 0)
    return []
  const seen = words.length > 0 ? ` The column has ${words.map((word) => `'${word}'`).join(', ')}` : ''
  const example = `${quoteNameIfNeeded(workflow.name)} = '${chooseExampleValue(words)}'`
  return [
    {
      text: 'filter:',
      fillIn: `a condition such as ${example}: which rows are to be sent? For all of them remove this line.${seen}`,
    },
  ]
}

interface WrittenColumn {
  readonly column: CatalogColumn
  readonly line: YamlLine
}

/** In a business table, only names about the transfer count, such as `sync_error`. */
function chooseWrittenColumns(table: CatalogTable, isOutbox: boolean, state: StateChoice): WrittenColumn[] {
  const free = table.columns.filter((column) => column !== state.column && !column.isGenerated)
  const texts = free.filter((column) => isTextColumn(column) && !column.notNull)
  const about = `sync|export|transfer|outbox|interface|upload${isOutbox ? '|last|send|processing|delivery|service|' : ''}`
  const named = (form: string) => {
    const pattern = new RegExp(`^(?:${about})(?:last)?(?:error|failure)${form}$`)
    return texts.find(({ name }) => pattern.test(normalizeName(name)))
  }
  const ids = texts.filter(({ name }) => isOutbox || /^(service|sync)transactionid$/.test(normalizeName(name)))
  const hasStatus = isOutbox && state.lines.some(({ text }) => text.startsWith('  status:'))
  const givenUp = isOutbox && state.column !== null ? free.find(isGivenUpTime) : undefined
  const updated = hasStatus ? free.filter(({ type }) => /^timestamp/.test(type)) : []
  const wanted: readonly [CatalogColumn | null | undefined, string, string][] = [
    [chooseByUsualName(ids, 'transactionId'), 'transaction_id', 'by which the service knows it'],
    [named('code'), 'error_code', 'E001 and the like'],
    [named('(?:message|text|reason|detail|details)?'), 'error', 'why it failed; cut to fit'],
    [givenUp, '{ what: now, on: [failed, rejected, discarded] }', 'given up'],
    [chooseByUsualName(updated, 'updatedAt'), 'now', 'the last write'],
  ]
  return wanted.flatMap(([column, what, comment]) =>
    column ? [{ column, line: { text: `  ${quoteForYaml(column.name)}: ${what}`, comment } }] : [],
  )
}
