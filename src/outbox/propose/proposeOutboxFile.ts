import { states } from '../../model.ts'
import { quoteForYaml, type YamlLine } from '../../yaml/yamlLines.ts'
import { ourColumns } from '../migrateOutbox.ts'
import { standardOutboxTable } from '../outboxTable.ts'
import {
  type CatalogColumn,
  type CatalogTable,
  isInteger,
  isText,
  isTime,
  listOf,
  mayBeStatus,
  mayChooseRows,
  mayHoldJson,
} from './catalogTable.ts'

/** Returns true for a table with exactly the columns of migrations/outbox.sql. */
export const isOurTable = ({ columns }: CatalogTable): boolean =>
  columns.length === ourColumns.length && columns.every(({ name }) => ourColumns.includes(name))

/** Returns the primary key, or a column that is unique and not null. Null if the catalog shows none. */
export function findIdColumn({ columns, primaryKey, hasHeirs }: CatalogTable): CatalogColumn | null {
  const unique = hasHeirs ? [] : columns.filter(({ isUnique, notNull }) => isUnique && notNull)
  return unique.find(({ name }) => primaryKey.length === 1 && name === primaryKey[0]) ?? unique[0] ?? null
}

export interface OutboxFileSource {
  /** The type of every row; null if a column may have the type. */
  readonly type: string | null
  /** True if the query in the mapping file reads the payload. */
  readonly hasQuery: boolean
  /** Names of columns with codes of currencies. */
  readonly currencies: readonly string[]
}

/** Fills in what follows from keys and types. All else is FILL IN, with the columns that fit. */
export function proposeOutboxFile(table: CatalogTable, { type, hasQuery, currencies }: OutboxFileSource): YamlLine[] {
  const named = [{ text: `schema: ${quoteForYaml(table.schema)}` }, { text: `table: ${quoteForYaml(table.name)}` }]
  if (isOurTable(table)) return [...named, ...ourLines(table)]
  const id = findIdColumn(table)
  const columns = table.columns.filter((column) => column !== id)
  const times = columns.filter((each) => isTime(each) && !each.notNull)
  const flags = columns.filter((each) => each.type === 'boolean')
  const statuses = columns.filter(mayBeStatus)
  const texts = columns.filter((each) => isText(each) && !mayHoldJson(each))
  const inEuro = currencies.length === 0 ? '' : ` Leave out currencies other than euro (${currencies.join(', ')}).`
  return [
    ...named,
    ...idLines(table, id),
    ...createdAtLines(columns, id),
    type === null
      ? {
          text: 'type: FILL_IN',
          fillIn: `the column with the type, or { constant: NAME } for all rows${listOf(texts)}`,
        }
      : { text: `type: { constant: ${quoteForYaml(type)} }`, comment: 'the type of every row: one mapping file' },
    { text: '# key: COLUMN', comment: 'records with one value, such as the customer, are sent in order' },
    ...(hasQuery ? [{ text: '', comment: 'payload: the query in the mapping file reads it' }] : payloadLines(table)),
    {
      text: 'filter: FILL_IN',
      fillIn: `a condition in SQL: which rows are to be sent? For all rows remove this line.${inEuro} Look at deleted and cancelled rows${listOf(columns.filter(mayChooseRows))}`,
    },
    {
      text: 'state: FILL_IN',
      fillIn:
        'what says that a row waits: a form below. outboxd writes to the column, so the ERP must not use it otherwise',
    },
    {
      text: '# state: { timestamp: COLUMN, set: [completed] }',
      comment: `NULL until the row was sent${listOf(times)}`,
    },
    { text: '# state: { flag: COLUMN, new: false, done: true, set: [queued] }', comment: `a flag${listOf(flags)}` },
    {
      text: '# state: { status: COLUMN, new: WORD, queued: WORD, completed: WORD }',
      comment: `words that are only about sending${listOf(statuses)}`,
    },
    {
      text: '# state: none',
      comment: 'no column: each row is sent once, also the old ones (see outboxd adopt --start now)',
    },
    {
      text: '# write: { COLUMN: error }',
      comment: `where the outcome goes; also transaction_id, error_code${listOf(texts.filter(({ notNull }) => !notNull))}`,
    },
  ]
}

function ourLines({ name }: CatalogTable): YamlLine[] {
  const { write, channel } = standardOutboxTable(name)
  return [
    ...['id: id', 'order: id', 'type: type', 'key: key', 'created_at: created_at', 'payload: payload'],
    ...['state:', '  status: status', '  new: new', ...states.map((state) => `  ${state}: ${state}`)],
    ...['write:', ...write.map(({ column, what }) => `  ${column}: ${what}`), `channel: ${channel}`],
  ].map((text) => ({ text }))
}

function idLines({ kind, hasHeirs, columns, primaryKey, sql }: CatalogTable, id: CatalogColumn | null): YamlLine[] {
  if (id !== null) {
    const why = primaryKey[0] === id.name ? 'the primary key' : 'unique and not null'
    return [{ text: `id: ${quoteForYaml(id.name)}`, comment: `${id.type}, ${why}` }]
  }
  if (kind !== 'r' || hasHeirs) {
    const why = 'no index shows that an id is unique here, because the table has partitions or inheriting tables'
    const promise = 'promised, if no two rows can ever have one id: the second would never be sent'
    return [
      { text: 'id: FILL_IN', fillIn: `the column that identifies a row for ever; ${why}${listOf(columns)}` },
      { text: 'id_unique: FILL_IN', fillIn: promise },
    ]
  }
  const add = `alter table ${sql} add column outbox_id bigint generated always as identity unique`
  const fillIn = `no column is unique and not null. Make one so, or add one: ${add} (locks and rewrites the table)${listOf(columns)}`
  return [{ text: 'id: FILL_IN', fillIn }]
}

const currentTime = /^(now|clock_timestamp|transaction_timestamp|statement_timestamp)\(\)$|^CURRENT_TIMESTAMP$/

/** Fills in the time only if Postgres sets exactly one column to the time of the insert. */
function createdAtLines(columns: readonly CatalogColumn[], id: CatalogColumn | null): YamlLine[] {
  const times = columns.filter(isTime)
  const [created, other] = times.filter((each) => each.notNull && currentTime.test(each.default ?? ''))
  if (created === undefined || other !== undefined) {
    const lost = 'Without it another row of a known id counts as sent, and no start at a date is possible'
    const what = 'the time at which the row was made, which must never change. To go without, remove this line'
    if (times.length === 0) return [{ text: '', comment: `created_at: no column is a time. ${lost}.` }]
    return [{ text: 'created_at: FILL_IN', fillIn: `${what}. ${lost}${listOf(times)}` }]
  }
  const name = quoteForYaml(created.name)
  const order =
    id === null || isInteger(id) ? [] : [{ text: `order: ${name}`, comment: 'the id need not grow with time' }]
  if (created.type === 'timestamp with time zone')
    return [...order, { text: `created_at: ${name}`, comment: 'set by Postgres; it must never change' }]
  const fillIn = 'the zone of these times, such as UTC or Europe/Berlin. The time must never change'
  return [...order, { text: `created_at: { column: ${name}, timezone: FILL_IN }`, fillIn }]
}

function payloadLines({ columns }: CatalogTable): YamlLine[] {
  const documents = columns.filter(mayHoldJson)
  if (documents.length > 0) {
    const fillIn = `the column with the record as JSON, or { columns: [NAME, NAME] } of the table${listOf(documents)}`
    return [{ text: 'payload: FILL_IN', fillIn }]
  }
  return [
    { text: 'payload:' },
    { text: '  columns:', comment: 'of these the mapping file chooses what is sent' },
    ...columns.map(({ name, exactType }) => ({ text: `    - ${quoteForYaml(name)}`, comment: exactType })),
  ]
}
