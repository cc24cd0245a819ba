import { listCandidates, quoteForYaml, withComment, withFillIn } from '../yaml/yamlLines.ts'
import {
  type CatalogColumn,
  type CatalogTable,
  isInteger,
  isText,
  isTime,
  labelColumns,
  mayBeStatus,
  mayChooseRows,
  mayHoldJson,
} from './catalogTable.ts'

export interface OutboxFileSource {
  /** The type of every row; null if a column has the record as JSON, and another one may have its type. */
  readonly type: string | null
  /** Names of columns with codes of currencies. */
  readonly currencies: readonly string[]
}

/** Fills in what follows from keys and types. All else is FILL IN, with the columns that fit. */
export function proposeOutboxFile(table: CatalogTable, { type, currencies }: OutboxFileSource): string {
  const id = findIdColumn(table)
  const columns = table.columns.filter((column) => column !== id)
  const texts = columns.filter((column) => isText(column) && !mayHoldJson(column))
  const lines = [
    '# yaml-language-server: $schema=./outbox.schema.json',
    '# Proposed by outboxd describe. docs/start/outbox.md says what each line means.',
    `schema: ${quoteForYaml(table.schema)}`,
    `table: ${quoteForYaml(table.name)}`,
    ...idLines(table, id),
    ...createdAtLines(columns.filter(isTime), id),
    ...(type === null
      ? withFillIn('type: FILL_IN', 'the column with the type, or { constant: NAME } for all rows', labelColumns(texts))
      : [withComment(`type: { constant: ${quoteForYaml(type)} }`, 'the type of every row: one mapping file')]),
    withComment('# key: COLUMN', 'records with one value, such as the customer, are sent in order'),
    ...(type === null
      ? withFillIn('payload: FILL_IN', 'the column with the record as JSON', labelColumns(columns.filter(mayHoldJson)))
      : ['# payload: the query in the mapping file reads it']),
    ...withFillIn('filter: FILL_IN', whichToSend(currencies), labelColumns(columns.filter(mayChooseRows))),
    ...stateLines(columns),
    withComment('# write: { COLUMN: error }', 'where the outcome goes; also transaction_id, error_code'),
    ...listCandidates(labelColumns(texts.filter(({ notNull }) => !notNull))),
    ...withFillIn(
      'start: FILL_IN',
      'now (rows that exist when the first daemon starts are not sent), beginning (all that wait are) or id:N (rows from that id on, if they wait). It counts once, at the first start',
    ),
  ]
  return `${lines.join('\n')}\n`
}

/** Returns the primary key, or a column that is unique and not null. Null if the catalog shows none. */
export function findIdColumn({ columns, primaryKey, hasHeirs }: CatalogTable): CatalogColumn | null {
  const unique = hasHeirs ? [] : columns.filter(({ isUnique, notNull }) => isUnique && notNull)
  return unique.find(({ name }) => primaryKey.length === 1 && name === primaryKey[0]) ?? unique[0] ?? null
}

/** Says what a condition is to choose. */
export function whichToSend(currencies: readonly string[]): string {
  const inEuro = currencies.length === 0 ? '' : ` Leave out currencies other than euro (${currencies.join(', ')}).`
  return `a condition in SQL: which are to be sent?${inEuro} Look at what is deleted or cancelled. To send all, remove this line`
}

function idLines({ columns, primaryKey, sql }: CatalogTable, id: CatalogColumn | null): string[] {
  if (id !== null) {
    const why = primaryKey[0] === id.name ? 'the primary key' : 'unique and not null'
    return [withComment(`id: ${quoteForYaml(id.name)}`, `${id.type}, ${why}`)]
  }
  const add = `alter table ${sql} add column outbox_id bigint generated always as identity unique`
  return withFillIn(
    'id: FILL_IN',
    `the column that identifies a row for ever. No index shows that one is unique and not null. Make one so, or add one: ${add} (locks and rewrites the table). With partitions or inheriting tables, promise it: add the line id_unique: promised`,
    labelColumns(columns),
  )
}

const currentTime = /^(now|clock_timestamp|transaction_timestamp|statement_timestamp)\(\)$|^CURRENT_TIMESTAMP$/

/** Fills in the time only if Postgres sets exactly one column to the time of the insert. */
function createdAtLines(times: readonly CatalogColumn[], id: CatalogColumn | null): string[] {
  if (times.length === 0) return []
  const [created, other] = times.filter((each) => each.notNull && currentTime.test(each.default ?? ''))
  if (created === undefined || other !== undefined)
    return withFillIn(
      'created_at: FILL_IN',
      'the time at which the row was made, which must never change. To go without, remove this line: then another row of a known id counts as sent',
      labelColumns(times),
    )
  const name = quoteForYaml(created.name)
  const order = id === null || isInteger(id) ? [] : [withComment(`order: ${name}`, 'the id need not grow with time')]
  if (created.type === 'timestamp with time zone')
    return [...order, withComment(`created_at: ${name}`, 'set by Postgres; it must never change')]
  const zone = 'the zone of these times, such as UTC or Europe/Berlin. The time must never change'
  return [...order, ...withFillIn(`created_at: { column: ${name}, timezone: FILL_IN }`, zone)]
}

function stateLines(columns: readonly CatalogColumn[]): string[] {
  const times = columns.filter((column) => isTime(column) && !column.notNull)
  const flags = columns.filter(({ type }) => type === 'boolean')
  const waiting = flags.every(({ notNull }) => notNull) ? 'false' : '[false, null]'
  const statusForm = '# state: { status: COLUMN, new: WORD, queued: WORD, completed: WORD }'
  return [
    ...withFillIn(
      'state: FILL_IN',
      'what says that a row waits: a form below. outboxd writes to the column, so the ERP must not use it otherwise',
    ),
    withComment('# state: { timestamp: COLUMN, set: [completed] }', 'NULL until the row was sent'),
    ...listCandidates(labelColumns(times)),
    withComment(`# state: { flag: COLUMN, new: ${waiting}, done: true, set: [queued] }`, 'a flag'),
    ...listCandidates(labelColumns(flags)),
    withComment(statusForm, 'only of sending'),
    ...listCandidates(labelColumns(columns.filter(mayBeStatus))),
    withComment('# state: none', 'no column: each row is sent once'),
    withComment('# sequence: COLUMN', 'with state: none, a column that a sequence fills at the insert'),
  ]
}
