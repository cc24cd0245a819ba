import { createHash } from 'node:crypto'
import { textCharsMax } from '../boundText.ts'
import type { StartPosition } from '../ledger/binding.ts'
import { areOtherRowsSql } from '../ledger/rowConflicts.ts'
import { states } from '../model/submission.ts'
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
import { type CreatedAt, type OutboxTable, tableFormOf } from './outboxTable.ts'
import { OutboxTableUnusable } from './readTableShape.ts'
import { stateExpressions } from './stateForms.ts'

/** The ledger cuts longer ids when it records a problem, so only this part of an id is compared. */
export const idCharsMax = textCharsMax.message - 1

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
  const sort = sortExpressions(table)
  const idText = `(${prefixedColumnSql(table.id)})::text`
  const rawRowColumns = `${idText} as "outboxId", ${type} as type, ${key} as key,
      ${createdAt} as "createdAt", ${created} as created, octet_length(${payload}) as bytes,
      case when octet_length(${payload}) <= $1 then ${payload} end as raw`
  const filterSuffix = filterExpression(table, failingIds)
  const begins = notBeforeStartSql(table, shape, start)
  const id = prefixedColumnSql(table.id)
  const isNew = stateExpressions(table.state)?.waitsSql ?? 'true'
  // A row without an id cannot be recognised, and would break the comparisons of ids for the rows beside it.
  const mayBeOurs = columnOf(shape, table.id).notNull ? isNew : `${isNew} and ${id} is not null`
  const waits = `${mayBeOurs}${filterSuffix}${begins}`
  // Queries one entry of an index for each row. Of `exists` Postgres makes a join, which may read the whole ledger.
  const recordOfId = (selectSql: string, andSql = '') =>
    `(select ${selectSql} from outboxd.submission s where s.outbox_id operator(pg_catalog.=) ${idText} collate "C"${andSql})`
  const isOther = areOtherRowsSql('s.row_created', created)
  const record = (selectSql: string) => recordOfId(selectSql, ` and not ${isOther}`)
  const writtenStates = states.filter((state) => stateExpressions(table.state)?.isWrittenAt(state))
  const isSetBack =
    writtenStates.length === 0
      ? record('false')
      : record(`not s.report_due and s.state in (${literalListSql(writtenStates)})`)
  const number = prefixedColumnSql(table.sequence ?? table.id)
  const form = tableFormOf(table)
  const isAhead = form === 'append-only' ? `${number} > ${positionSql}` : 'true'
  const hasNoRecord = form === 'marked' ? waits : `${waits} and ${record('s.seq')} is null`
  return {
    from: `${shape.qualified} o`,
    /** The condition that the row says that it waits. If capture does not mark rows, it holds for captured ones, too. */
    waits,
    /** The condition that a row waits for its capture. */
    uncaptured: form === 'append-only' ? `${isAhead} and ${hasNoRecord}` : hasNoRecord,
    /** `uncaptured`, also for rows behind the position of an append-only table. */
    hasNoRecord,
    /** The column by which an append-only table is read. */
    number,
    /** The condition that a row is behind no position of an append-only table: true in the other forms. */
    isAhead,
    /** The condition that a row would be captured if its record were deleted. */
    waitsWithoutRecord: form === 'append-only' ? `${number} > ${prunedNumberSql} and ${waits}` : waits,
    /** For the form end only: the condition that the row waits again although its outcome was written. */
    setBack: `${waits} and ${isSetBack}`,
    /** For the form end only: `uncaptured` or `setBack`. */
    needsWork: `${waits} and ${isSetBack} is not false`,
    /** `waits` without the filter. */
    mayWait: `${mayBeOurs}${begins}`,
    filtered: filterSuffix,
    /** The condition that a row is not before the ledger's start position, to append to another condition. */
    begins,
    /** The condition that the ledger has no record with the row's id. */
    isUnknown: `${recordOfId('s.seq')} is null`,
    /** True if the ledger's record with the row's id is one of a different row; NULL if it has none. */
    isOtherRow: recordOfId(isOther),
    /** The ledger's record with the row's id, as JSON of `state` and `recorded`. */
    recordOfIdJson: recordOfId(
      `json_build_object('state', s.state, 'recorded', to_char(s.recorded_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'))`,
    ),
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
    /** The id of submission `s`, to compare with the column. Ids of the ledger have the collation C. */
    idOfSubmission: `s.outbox_id::${columnOf(shape, table.id).type}${columnOf(shape, table.id).collateSql}`,
    idText,
    /** The id as the ledger cuts it. Compared as text, because a cut id may not fit the column's type. */
    shortenedId: `left(${idText}, ${idCharsMax})`,
    /** The values by which rows are ordered. The last one is always the id. */
    sort,
    order: sort.join(', '),
  }
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

function sortExpressions({ sequence, order, id }: OutboxTable): string[] {
  const first = sequence ?? order ?? id
  return first === id ? [prefixedColumnSql(id)] : [prefixedColumnSql(first), prefixedColumnSql(id)]
}

/** The highest number of a row whose record retention has deleted. Rows behind the position may have no record, too. */
export const prunedNumberSql = `coalesce((select c.pruned_number from outboxd.outbox_cursor c), '-9223372036854775808'::bigint)`

/** The highest number of the sequence up to which the ledger has all rows. */
const positionSql = `coalesce((select c.position from outboxd.outbox_cursor c), '-9223372036854775808'::bigint)`

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
      `the ledger has the start position ${at}, but the description of the table ${shape.qualified} names no created_at. Name the column again`,
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
