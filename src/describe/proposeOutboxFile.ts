import { states } from '../model/submission.ts'
import { ourColumns } from '../outbox/migrateOutbox.ts'
import { standardOutboxTable } from '../outbox/outboxTable.ts'
import { quoteForYaml, withComment, withFillIn } from '../yaml/yamlLines.ts'
import * as catalog from './catalogTable.ts'

type Column = catalog.CatalogColumn
type Table = catalog.CatalogTable

/** Returns true for a table with exactly the columns of migrations/outbox.sql. */
export const isOurTable = ({ columns }: Table): boolean =>
  columns.length === ourColumns.length && columns.every(({ name }) => ourColumns.includes(name))

/** Returns the primary key, or a column that is unique and not null. Null if the catalog shows none. */
export function findIdColumn({ columns, primaryKey, hasHeirs }: Table): Column | null {
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
export function proposeOutboxFile(table: Table, source: OutboxFileSource): string {
  const lines = [
    '# yaml-language-server: $schema=./outbox.schema.json',
    '# Proposed by outboxd describe. docs/start/outbox.md says what each line means.',
    `schema: ${quoteForYaml(table.schema)}`,
    `table: ${quoteForYaml(table.name)}`,
    ...(isOurTable(table) ? ourLines(table) : foreignLines(table, source)),
  ]
  return `${lines.join('\n')}\n`
}

/** An empty table needs no start: `run` asks if there are rows by then. */
function startLines({ columns }: Table): string[] {
  const rows = columns.find(({ sample }) => sample !== null)?.sample?.rows
  if (rows === 0) return []
  const choice =
    'now (rows that exist when the first daemon starts are not sent), beginning (all that wait are) or id:N (rows from that id on, if they wait)'
  return [withFillIn('start: FILL_IN', `${choice}. It counts once, at the first start`)]
}

function ourLines({ name }: Table): string[] {
  const { write, channel } = standardOutboxTable(name)
  return [
    ...['id: id', 'order: id', 'type: type', 'key: key', 'created_at: created_at', 'payload: payload'],
    ...['state:', '  status: status', '  new: new', ...states.map((state) => `  ${state}: ${state}`)],
    ...['write:', ...write.map(({ column, what }) => `  ${column}: ${what}`), `channel: ${channel}`],
  ]
}

function foreignLines(table: Table, { type, hasQuery, currencies }: OutboxFileSource): string[] {
  const { listOf } = catalog
  const id = findIdColumn(table)
  const columns = table.columns.filter((column) => column !== id)
  const times = columns.filter((each) => catalog.isTime(each) && !each.notNull)
  const flags = columns.filter((each) => each.type === 'boolean')
  const waiting = flags.every(({ notNull }) => notNull) ? 'false' : '[false, null]'
  const statuses = columns.filter(catalog.mayBeStatus)
  const texts = columns.filter((each) => catalog.isText(each) && !catalog.mayHoldJson(each))
  const inEuro = currencies.length === 0 ? '' : ` Leave out currencies other than euro (${currencies.join(', ')}).`
  const which = `a condition in SQL: which rows are to be sent? For all rows remove this line.${inEuro} Look at deleted and cancelled rows`
  const waits =
    'what says that a row waits: a form below. outboxd writes to the column, so the ERP must not use it otherwise'
  const none = 'no column: each row is sent once'
  const outcome = `where the outcome goes; also transaction_id, error_code${listOf(texts.filter(({ notNull }) => !notNull))}`
  return [
    ...idLines(table, id),
    ...createdAtLines(columns, id),
    type === null
      ? withFillIn('type: FILL_IN', `the column with the type, or { constant: NAME } for all rows${listOf(texts)}`)
      : withComment(`type: { constant: ${quoteForYaml(type)} }`, 'the type of every row: one mapping file'),
    withComment('# key: COLUMN', 'records with one value, such as the customer, are sent in order'),
    ...(hasQuery ? ['# payload: the query in the mapping file reads it'] : payloadLines(table)),
    withFillIn('filter: FILL_IN', `${which}${listOf(columns.filter(catalog.mayChooseRows))}`),
    withFillIn('state: FILL_IN', waits),
    withComment('# state: { timestamp: COLUMN, set: [completed] }', `NULL until the row was sent${listOf(times)}`),
    withComment(`# state: { flag: COLUMN, new: ${waiting}, done: true, set: [queued] }`, `a flag${listOf(flags)}`),
    withComment(
      '# state: { status: COLUMN, new: WORD, queued: WORD, completed: WORD }',
      `only of sending${listOf(statuses)}`,
    ),
    withComment('# state: none', none),
    withComment('# sequence: COLUMN', 'with state: none, a column that a sequence fills at the insert'),
    withComment('# write: { COLUMN: error }', outcome),
    ...startLines(table),
  ]
}

function idLines({ kind, hasHeirs, columns, primaryKey, sql }: Table, id: Column | null): string[] {
  if (id !== null) {
    const why = primaryKey[0] === id.name ? 'the primary key' : 'unique and not null'
    return [withComment(`id: ${quoteForYaml(id.name)}`, `${id.type}, ${why}`)]
  }
  const list = catalog.listOf(columns)
  if (kind !== 'r' || hasHeirs) {
    const why = 'no index shows that an id is unique here, because the table has partitions or inheriting tables'
    return [
      withFillIn('id: FILL_IN', `the column that identifies a row for ever; ${why}${list}`),
      withFillIn('id_unique: FILL_IN', 'promised, if no two rows can ever have one id: the second would never be sent'),
    ]
  }
  const add = `alter table ${sql} add column outbox_id bigint generated always as identity unique`
  return [
    withFillIn(
      'id: FILL_IN',
      `no column is unique and not null. Make one so, or add one: ${add} (locks and rewrites the table)${list}`,
    ),
  ]
}

const currentTime = /^(now|clock_timestamp|transaction_timestamp|statement_timestamp)\(\)$|^CURRENT_TIMESTAMP$/

/** Fills in the time only if Postgres sets exactly one column to the time of the insert. */
function createdAtLines(columns: readonly Column[], id: Column | null): string[] {
  const times = columns.filter(catalog.isTime)
  const [created, other] = times.filter((each) => each.notNull && currentTime.test(each.default ?? ''))
  if (created === undefined || other !== undefined) {
    const lost = 'Without it another row of a known id counts as sent'
    const what = 'the time at which the row was made, which must never change. To go without, remove this line'
    if (times.length === 0) return [`# created_at: no column is a time. ${lost}.`]
    return [withFillIn('created_at: FILL_IN', `${what}. ${lost}${catalog.listOf(times)}`)]
  }
  const name = quoteForYaml(created.name)
  const order =
    id === null || catalog.isInteger(id) ? [] : [withComment(`order: ${name}`, 'the id need not grow with time')]
  if (created.type === 'timestamp with time zone')
    return [...order, withComment(`created_at: ${name}`, 'set by Postgres; it must never change')]
  const zone = 'the zone of these times, such as UTC or Europe/Berlin. The time must never change'
  return [...order, withFillIn(`created_at: { column: ${name}, timezone: FILL_IN }`, zone)]
}

function payloadLines({ columns }: Table): string[] {
  const documents = columns.filter(catalog.mayHoldJson)
  const what = 'the column with the record as JSON, or { columns: [NAME, NAME] } of the table'
  if (documents.length > 0) return [withFillIn('payload: FILL_IN', `${what}${catalog.listOf(documents)}`)]
  return [
    'payload:',
    withComment('  columns:', 'of these the mapping file chooses what is sent'),
    ...columns.map(({ name, exactType }) => withComment(`    - ${quoteForYaml(name)}`, exactType)),
  ]
}
