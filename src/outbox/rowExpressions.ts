import { createHash } from 'node:crypto'
import type { StartPosition } from '../ledger/binding.ts'
import { quoteIdentifier } from '../postgres/database.ts'
import {
  columnOf,
  isoTimeSql,
  literalListSql,
  literalSql,
  prefixedColumnSql,
  type TableShape,
  timeUnitsPerSecond,
} from './columns.ts'
import { type CreatedAt, isMarkedOnCapture, type OutboxTable } from './outboxTable.ts'
import { OutboxTableUnusable } from './readTableShape.ts'
import { stateExpressions } from './stateForms.ts'

interface SortValue {
  readonly expression: string
  readonly type: string
}

export type RowExpressions = Readonly<ReturnType<typeof rowExpressions>>

/**
 * Makes the expressions of every statement on an outbox table, whose rows have the alias o.
 * @param failingIds rows whose filter raises an error. Statements leave it out and count the rows as ours
 */
export function rowExpressions(
  table: OutboxTable,
  shape: TableShape,
  start: StartPosition,
  failingIds: readonly string[] = [],
) {
  const payload = payloadText(table, shape)
  const key = table.key === null ? 'null::text' : `${prefixedColumnSql(table.key)}::text`
  const createdAt = createdAtExpression(table, shape)
  const type = typeExpression(table)
  const created = createdExpression(table, shape)
  const sort = sortExpressions(table, shape)
  const idText = `(${prefixedColumnSql(table.id)})::text`
  const rawRowColumns = `${idText} as "outboxId", ${type} as type, ${key} as key,
      ${createdAt} as "createdAt", ${created} as created, octet_length(${payload}) as bytes,
      case when octet_length(${payload}) <= $1 then ${payload} end as raw`
  const filterSuffix = filterExpression(table, failingIds)
  const begins = notBeforeStartSql(table, shape, start)
  const id = prefixedColumnSql(table.id)
  const isNew = stateExpressions(table.state)?.waitsSql ?? 'true'
  const mayLackId = !columnOf(shape, table.id).notNull
  // A row without an id cannot be recognised, and would break the comparisons of ids for the rows beside it.
  const waits = mayLackId ? `${isNew} and ${id} is not null` : isNew
  return {
    from: `${shape.qualified} o`,
    waits: `${waits}${filterSuffix}${begins}`,
    /** `waits` without the filter. */
    mayWait: `${waits}${begins}`,
    /** Rows that would wait if they had an id; null if the column allows no NULL. */
    lacksId: mayLackId ? `${isNew} and ${id} is null${filterSuffix}` : null,
    filtered: filterSuffix,
    key,
    /** A hash of the key, because it is short, and readable in any encoding. */
    keyHash: `hashtextextended(${key}, 0)`,
    type,
    payload,
    /** ISO 8601 text in UTC with microseconds. */
    createdAt,
    /** The creation time, which tells the row from another with its id: a digest of the column, and the time as text; or NULL. */
    created,
    /** The columns of a `RawRow`. $1 is the most bytes of payload to read. */
    record: rawRowColumns,
    id,
    idType: columnOf(shape, table.id).type,
    exactIdType: columnOf(shape, table.id).exactType,
    idText,
    /** The values by which rows are ordered. The last one is always the id. */
    sort,
    order: sort.map(({ expression }) => expression).join(', '),
    /** The expressions that order the rows of a key among the rows that are read together. */
    orderInKey: sortInKey(table, shape, sort).map(({ expression }) => expression),
    seen: `${idText} as "outboxId", ${created} as created, ${createdAt} as "createdAt"`,
  }
}

/**
 * A digest of everything on which a cursor depends. If the digest changes, rows behind the cursor may have to be sent,
 * so the table is read from its start again.
 * @param rows the expressions of `OpenTable.rowsIncludingFailing`, because the set of failing rows may change
 */
export function computeCursorQueryDigest(
  { waits, sort }: Pick<RowExpressions, 'waits' | 'sort'>,
  scanRestarts: number,
): string {
  const said = JSON.stringify([waits, sort.map(({ expression }) => expression), scanRestarts])
  return createHash('sha256').update(said).digest('hex').slice(0, 16)
}

/** Leaves out the filter for failing rows. `case` makes Postgres compare the id first. */
function filterExpression({ filter, id }: OutboxTable, failingIds: readonly string[]): string {
  if (filter === null) return ''
  if (failingIds.length === 0) return ` and (${filter}\n)`
  return ` and case when ${prefixedColumnSql(id)}::text in (${literalListSql(failingIds)}) then true else (${filter}\n) end`
}

/** NULL becomes an empty text, so that the mapping can reject a record without a type. */
function typeExpression({ type }: OutboxTable): string {
  if (type.kind === 'constant') return `${literalSql(type.type)}::text`
  const text = `coalesce(${prefixedColumnSql(type.column)}::text, '')`
  if (type.values.size === 0) return text
  const cases = [...type.values].map(([from, to]) => `when ${literalSql(from)} then ${literalSql(to)}`)
  return `case ${text} ${cases.join(' ')} else ${text} end`
}

/** Years 1 to 9999. Beyond them to_timestamp throws, and the whole batch would fail. */
const leastSecond = -62_135_596_800
const mostSecond = 253_402_300_799

function createdAtExpression({ createdAt }: OutboxTable, shape: TableShape): string {
  if (createdAt === null) return 'null::text'
  const at = prefixedColumnSql(createdAt.column)
  if (createdAt.unit !== null) {
    const perSecond = timeUnitsPerSecond[createdAt.unit]
    const inRange = `${at} between ${leastSecond * perSecond} and ${mostSecond * perSecond}`
    return `case when ${inRange} then ${isoTimeSql(`to_timestamp(${at}::numeric / ${perSecond}) at time zone 'UTC'`)} end`
  }
  const zoned = columnOf(shape, createdAt.column).baseType === 'timestamp with time zone'
  const instant = zoned ? at : `${at}::timestamp at time zone ${literalSql(createdAt.timezone)}`
  return `case when isfinite(${at}) then ${isoTimeSql(`(${instant}) at time zone 'UTC'`)} end`
}

function payloadText({ payload }: OutboxTable, shape: TableShape): string {
  if (payload.kind === 'column') {
    const { baseType } = columnOf(shape, payload.column)
    return baseType === 'bytea' ? prefixedColumnSql(payload.column) : `${prefixedColumnSql(payload.column)}::text`
  }
  if (payload.columns === null) return 'row_to_json(o.*)::text' // o alone would be a column of that name
  // row_to_json prints numbers and times as a cast to text does. json_build_object takes only 50 columns.
  const named = [...payload.columns].map(([name, from]) => `${prefixedColumnSql(from)} as ${quoteIdentifier(name)}`)
  return `(select row_to_json(built.*)::text from (select ${named.join(', ')}) built)`
}

/** The 64-bit number of the transaction that wrote the row: xmin has its lower 32 bits. */
const transactionOfRow = `(select pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
  - (((select pg_snapshot_xmax(pg_current_snapshot())::text::bigint) - o.xmin::text::bigint) & 4294967295)`

function sortExpressions(table: OutboxTable, shape: TableShape): SortValue[] {
  const byColumn = (name: string) => ({ expression: prefixedColumnSql(name), type: columnOf(shape, name).type })
  const ofSystem = (expression: string, type: string) => ({ expression, type })
  const byTransaction =
    isMarkedOnCapture(table) || table.sequence !== null ? [] : [ofSystem(transactionOfRow, 'bigint')]
  // Orders the rows of one transaction by `sequence` or `order`, or else by the transaction's statements (cmin).
  const within = table.sequence ?? table.order ?? (byTransaction.length > 0 ? null : table.id)
  const second = within === null ? ofSystem('o.cmin::text::integer', 'integer') : byColumn(within)
  return [...byTransaction, second, ...(within === table.id ? [] : [byColumn(table.id)])]
}

/** Leaves out the transaction's number: it is drawn at the first write, and a savepoint has its own. */
function sortInKey(table: OutboxTable, { isIdNumbered }: TableShape, sort: readonly SortValue[]): readonly SortValue[] {
  if (isMarkedOnCapture(table) || table.sequence !== null) return sort
  if (table.order !== null) return sort.slice(1)
  return isIdNumbered ? sort.slice(-1) : sort
}

/**
 * The condition that a row is not before the start position, to append to another condition; empty without a start
 * position. Includes rows without a creation time, so that they are not lost.
 */
export function notBeforeStartSql(table: OutboxTable, shape: TableShape, { id, at }: StartPosition): string {
  const fromId =
    id === null ? '' : ` and ${prefixedColumnSql(table.id)} >= ${literalSql(id)}::${columnOf(shape, table.id).type}`
  if (at === null) return fromId
  if (table.createdAt === null)
    throw new OutboxTableUnusable(
      `the ledger has the start position ${at}, but the description of the table ${shape.qualified} names no created_at. Add the column, or set a different start with \`outboxd adopt --start id:N\``,
    )
  const recorded = prefixedColumnSql(table.createdAt.column)
  return `${fromId} and (${recorded} is null or ${recorded} >= ${momentSql(table.createdAt, shape, at)})`
}

function momentSql({ column: name, unit, timezone }: CreatedAt, shape: TableShape, at: string): string {
  const moment = `${literalSql(at)}::timestamptz`
  if (unit !== null) return `extract(epoch from ${moment}) * ${timeUnitsPerSecond[unit]}`
  const { baseType } = columnOf(shape, name)
  if (baseType === 'timestamp with time zone') return moment
  const local = `(${moment} at time zone ${literalSql(timezone)})`
  return baseType === 'date' ? `${local}::date` : local
}

export interface TypeCount {
  type: string
  waiting: number
}

export const typeCountsSql = (fromSql: string, typeSql: string, conditionSql: string): string => `
  select type, count(*)::int as waiting from (select ${typeSql} as type from ${fromSql} where ${conditionSql} limit $1) waiting
  group by type order by type`

/**
 * Does not use the timezone of `outbox.yaml`, because the operator may correct it later. A date is too coarse: an id may
 * come again on the same day.
 */
function createdExpression({ createdAt }: OutboxTable, shape: TableShape): string {
  if (createdAt === null) return 'null::text'
  const at = prefixedColumnSql(createdAt.column)
  const { baseType, exactType } = columnOf(shape, createdAt.column)
  if (baseType === 'date') return 'null::text'
  const column = createHash('sha256').update(`${createdAt.column} ${exactType}`).digest('hex').slice(0, 8)
  return `'${column} ' || ${timeText(at, baseType)}`
}

function timeText(at: string, baseType: string): string {
  if (baseType === 'timestamp with time zone') return isoTimeSql(`${at} at time zone 'UTC'`)
  return baseType === 'timestamp without time zone' ? isoTimeSql(at) : `${at}::text`
}
