import { quoteYaml, type YamlLine } from '../../yaml/yamlLines.ts'
import { type CatalogColumn, type CatalogTable, qualifiedTable } from './catalogTable.ts'
import { chooseState, findStatusColumn, isText, type StateChoice, type WordsOf } from './chooseState.ts'
import { findNamed, isAnyStatus, isError, isGivenUp, names, plain, textPayloads } from './columnNames.ts'

/** What `outbox.yaml` may say of a table that the catalog has, and what it cannot know. */
export interface OutboxProposal {
  readonly lines: readonly YamlLine[]
  readonly warnings: readonly string[]
  /** Which mapping files there have to be: for one constant type, or for the values of a column. */
  readonly type: { readonly constant: string } | { readonly column: string }
  /** The column that holds the payload, or those that it is built of. */
  readonly payload: { readonly column: CatalogColumn } | { readonly columns: ReadonlyMap<string, CatalogColumn> }
  /** Whether a column was found that names rows. */
  readonly hasId: boolean
}

/** Columns whose few values are to be looked at before anything is proposed. */
export function findWordColumns({ columns }: CatalogTable): string[] {
  const isOutbox = findPayload(columns) !== null
  const asked = [findStatusColumn(columns, isOutbox), findLifecycle(columns), findType(columns)]
  return [...new Set(asked.flatMap((column) => (column !== null && column.allowed === null ? [column.name] : [])))]
}

/** Proposes how a table is to be read. Pure. @param wordsOf see `findWordColumns` */
export function proposeOutbox(table: CatalogTable, wordsOf: WordsOf): OutboxProposal {
  const { columns } = table
  const document = findPayload(columns)
  const isOutbox = document !== null
  const state = chooseState(table, isOutbox, wordsOf)
  const writes = chooseWrites(table, isOutbox, state)
  const written = [...(state.column === null ? [] : [state.column.name]), ...writes.columns]
  const id = chooseId(table)
  const type = isOutbox ? findType(columns) : null
  const typeName = plainName(table.name)
  const payload = document === null ? { columns: payloadColumns(columns, written) } : ({ column: document } as const)
  return {
    hasId: id.column !== null,
    payload,
    type: type === null ? { constant: typeName } : { column: type.name },
    warnings: [...id.warnings, ...state.warnings, ...writes.warnings],
    lines: [
      { text: `schema: ${quoteYaml(table.schema)}` },
      { text: `table: ${quoteYaml(table.name)}` },
      ...id.lines,
      ...orderLines(table, id.column, state, isOutbox),
      type === null
        ? { text: `type: { constant: ${quoteYaml(typeName)} }`, comment: 'the type of every row: one mapping file' }
        : { text: `type: ${quoteYaml(type.name)}`, comment: 'one mapping file for each value' },
      keyEntry(findNamed(columns, names.key, isKey)),
      ...createdAtLines(findNamed(columns, names.createdAt, isTime)),
      ...payloadLines(payload),
      ...filterLines(table, isOutbox, state, wordsOf),
      ...state.lines,
      ...writes.lines,
    ],
  }
}

const isTime = ({ type }: CatalogColumn) => /^(timestamp with(out)? time zone|date|bigint)$/.test(type)
const isGivenUpTime = (column: CatalogColumn) =>
  isGivenUp(column.name) && !column.notNull && /^timestamp/.test(column.type)
const isKey = ({ type }: CatalogColumn) => !/^(jsonb?|xml|bytea|boolean|point)$|\[\]$/.test(type)

const plainName = (name: string) => name.replace(/[^A-Za-z0-9_-]+/g, '_').replace(/^_+(?=.)/, '') || 'record'

function findPayload(columns: readonly CatalogColumn[]): CatalogColumn | null {
  const holds = ({ type, name }: CatalogColumn) =>
    /^jsonb?$/.test(type) || (/^(text|character varying|bytea)$/.test(type) && textPayloads.includes(plain(name)))
  return findNamed(columns, names.payload, holds)
}

const findType = (columns: readonly CatalogColumn[]) =>
  findNamed(columns, names.type, (column) => isText(column) || column.allowed !== null)

/** The status of the business, as draft or released, which is not about data. */
const findLifecycle = (columns: readonly CatalogColumn[]) =>
  columns.find((column) => isAnyStatus(column.name) && (isText(column) || column.allowed !== null)) ?? null

function chooseId(table: CatalogTable): { column: CatalogColumn | null; lines: YamlLine[]; warnings: string[] } {
  const { columns, primaryKey, kind, hasHeirs } = table
  const certain = columns.filter((column) => column.isUnique && column.notNull)
  const found =
    certain.find(({ name }) => primaryKey.length === 1 && name === primaryKey[0]) ??
    findNamed(certain, ['id', 'uuid', 'guid'], () => true) ??
    certain[0]
  const catalogCan = kind === 'r' && !hasHeirs
  if (found !== undefined && !hasHeirs) {
    const why = primaryKey.length === 1 && primaryKey[0] === found.name ? 'the primary key' : 'unique and not null'
    return {
      column: found,
      warnings: [],
      lines: [{ text: `id: ${quoteYaml(found.name)}`, comment: `${found.type}, ${why}` }],
    }
  }
  const likely =
    found ?? findNamed(columns, ['id', 'uuid', 'guid'], () => true) ?? columns.find(({ isDrawn }) => isDrawn)
  if (!catalogCan)
    return {
      column: likely ?? null,
      warnings: [
        `"${table.name}" is ${kindName(table)}: no index can say that an id is unique. Where you are sure that it is, say id_unique: promised; of two rows of one id the second would never be sent`,
      ],
      lines: [
        likely === undefined
          ? {
              text: 'id:',
              trial: `id: ${quoteYaml(columns[0]?.name ?? '')}`,
              fillIn: `the column that names a row for ever, of ${namesOf(columns)}`,
            }
          : { text: `id: ${quoteYaml(likely.name)}`, comment: likely.type },
        {
          text: 'id_unique:',
          trial: 'id_unique: promised',
          fillIn: 'promised, where no two rows can ever have one id',
        },
      ],
    }
  const nullable = columns.find((column) => column.isUnique)
  return {
    column: null,
    warnings: [noIdWarning(table, nullable)],
    lines: [
      {
        text: 'id:',
        trial: `id: ${quoteYaml(columns[0]?.name ?? '')}`,
        fillIn: 'the column that names a row for ever: unique, and not null (see the warning)',
      },
    ],
  }
}

function noIdWarning(table: CatalogTable, nullable: CatalogColumn | undefined): string {
  const { name, primaryKey } = table
  const qualified = qualifiedTable(table)
  if (nullable !== undefined)
    return `"${name}" has no column that is unique and not null: "${nullable.name}" allows NULL: alter table ${qualified} alter "${nullable.name}" set not null`
  const add = `alter table ${qualified} add column outbox_id bigint generated always as identity unique (it rewrites the table, locked)`
  return primaryKey.length > 1
    ? `the primary key of "${name}" is of ${primaryKey.length} columns (${primaryKey.join(', ')}), and an id is one: ${add}`
    : `"${name}" has no unique column, and two rows of one id would count as one: ${add}`
}

function kindName({ kind, hasHeirs }: CatalogTable): string {
  if (hasHeirs) return 'a table that others inherit from'
  return (
    { v: 'a view', m: 'a materialized view', f: 'a foreign table', p: 'partitioned by another column' }[kind] ??
    'no table'
  )
}

/** Rows are put in order by the id where nothing else is said; one that is drawn as the row is inserted is best. */
function orderLines(
  table: CatalogTable,
  id: CatalogColumn | null,
  { column }: StateChoice,
  isOutbox: boolean,
): YamlLine[] {
  if (id?.isDrawn && column === null && isOutbox && table.kind === 'r')
    return [
      {
        text: `sequence: ${quoteYaml(id.name)}`,
        comment: 'rows are only added, and the database draws the number as it inserts: else remove it',
      },
    ]
  const time = findNamed(table.columns, names.createdAt, (each) => /^timestamp/.test(each.type) && each.notNull)
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
    comment: 'records of one key are sent in order; without this line none are',
  }
}

function createdAtLines(column: CatalogColumn | null): YamlLine[] {
  if (column === null)
    return [
      {
        text: '',
        comment: 'created_at: the time of the row, which must never change. None of the columns looks like one.',
      },
    ]
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

/** All that we do not write, by names that paths in a mapping read without quotes. */
function payloadColumns(columns: readonly CatalogColumn[], written: readonly string[]): Map<string, CatalogColumn> {
  const payload = new Map<string, CatalogColumn>()
  for (const column of columns) {
    if (written.includes(column.name)) continue
    const name = plainName(column.name)
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

/** Which rows are ours: what is given up is none, and which of a business are nobody but a person knows. */
function filterLines(table: CatalogTable, isOutbox: boolean, state: StateChoice, wordsOf: WordsOf): YamlLine[] {
  const givenUp = isOutbox && state.column?.type !== 'boolean' ? table.columns.find(isGivenUpTime) : undefined
  if (givenUp !== undefined && state.column !== null)
    return [
      {
        text: `filter: ${quoteYaml(`${quoteFilter(givenUp.name)} is null`)}`,
        comment: 'what was given up is none of ours',
      },
    ]
  const lifecycle = isOutbox ? null : findLifecycle(table.columns.filter((column) => column !== state.column))
  if (lifecycle === null || lifecycle === state.column) return []
  const words = lifecycle.allowed ?? wordsOf(lifecycle.name) ?? []
  const seen = words.length > 0 ? ` It has ${words.map((word) => `'${word}'`).join(', ')}` : ''
  const example = `${quoteFilter(lifecycle.name)} = '${words.at(1) ?? words[0] ?? '…'}'`
  return [
    {
      text: 'filter:',
      fillIn: `a condition such as ${example}: which rows are to be sent? For all of them remove this line.${seen}`,
    },
  ]
}

/** As a column is written in SQL. */
const quoteFilter = (name: string) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name}"`)

interface Writes {
  columns: string[]
  lines: YamlLine[]
  warnings: string[]
}

function chooseWrites(table: CatalogTable, isOutbox: boolean, state: StateChoice): Writes {
  const free = table.columns.filter((column) => column !== state.column && !column.isGenerated)
  if (!table.isUpdatable) return { columns: [], lines: [], warnings: [] }
  const transactionId = findNamed(
    free,
    isOutbox ? names.transactionId : ['servicetransactionid', 'synctransactionid'],
    () => true,
  )
  const wanted: [CatalogColumn | null | undefined, string, string][] = [
    [transactionId, 'transaction_id', 'by which the service knows it'],
    [free.find(({ name }) => isError(name, isOutbox, 'code')), 'error_code', 'E001 and the like'],
    [free.find(({ name }) => isError(name, isOutbox, 'text')), 'error', 'why it failed; cut to fit'],
  ]
  const fitting = wanted.flatMap(([column, what, comment]) =>
    column !== null && column !== undefined && isText(column) && !column.notNull ? [{ column, what, comment }] : [],
  )
  const warnings = wanted.flatMap(([column, what]) =>
    column === null || column === undefined || (isText(column) && !column.notNull) ? [] : [notWritten(column, what)],
  )
  const givenUp = isOutbox && state.column !== null ? free.find(isGivenUpTime) : undefined
  const updated =
    isOutbox && state.lines.some(({ text }) => text.startsWith('  status:'))
      ? findNamed(free, names.updatedAt, ({ type }) => /^timestamp/.test(type))
      : null
  const times = [
    ...(givenUp
      ? [{ column: givenUp, what: '{ what: now, on: [failed, rejected, discarded] }', comment: 'given up' }]
      : []),
    ...(updated ? [{ column: updated, what: 'now', comment: 'when we wrote last' }] : []),
  ]
  const all = [...fitting, ...times]
  const lines = all.map(({ column, what, comment }) => ({ text: `  ${quoteYaml(column.name)}: ${what}`, comment }))
  return {
    columns: all.map(({ column }) => column.name),
    warnings,
    lines: all.length > 0 ? [{ text: 'write:' }, ...lines] : [noWrites],
  }
}

const noWrites: YamlLine = {
  text: '',
  comment:
    'write: columns for transaction_id, error_code and error. None of the columns looks like one: nobody sees in the table why a record failed.',
}

function notWritten({ name, exactType, notNull }: CatalogColumn, what: string): string {
  const why = notNull ? 'it must not be NULL, and we empty it' : `it is ${exactType}, and we write text`
  return `"${name}" could take ${what}, but ${why}: the proposal leaves it out`
}

const namesOf = (columns: readonly CatalogColumn[]) => columns.map(({ name }) => name).join(', ')
