import type { StartPosition } from '../ledger/servedOutbox.ts'
import { quoteIdentifier } from '../postgres/database.ts'
import { column, columnOf, iso, literal, literals, unitsPerSecond } from './columns.ts'
import type { TableShape } from './inspectTable.ts'
import { type OutboxTable, saysTaken } from './outboxTable.ts'
import { stampExpression } from './rowStamp.ts'
import { startExpression } from './startPosition.ts'

/** The expressions of which every statement on an outbox table is made. Its rows have the alias o. */
export interface RowExpressions {
  /** Which rows wait and are ours. */
  readonly waits: string
  /** The same, but for the filter. */
  readonly mayWait: string
  /** Whether the filter takes a row in, to follow another condition. */
  readonly filtered: string
  readonly key: string
  /** A hash of the key, which is as short as the key may be long, and a number where no client may be able to read the key. */
  readonly line: string
  readonly type: string
  readonly payload: string
  /** ISO 8601 text in UTC with microseconds. */
  readonly createdAt: string
  /** Tells a row from another of the same id; never NULL. */
  readonly stamp: string
  /** Records by `outboxId, type, key, createdAt, stamp, raw, bytes`; $1 is the most bytes of payload to read. */
  readonly record: string
  readonly idType: string
  /** The id as text. */
  readonly idText: string
  /** What puts rows in order, and the type of each: the last one is always the id. */
  readonly sort: readonly SortValue[]
}

export interface SortValue {
  readonly expression: string
  readonly type: string
}

/**
 * @param start    rows before it are none of ours
 * @param unfilterable ids of rows that the filter or the stamp fails for: neither is asked for, and they count as ours
 */
export function rowExpressions(
  table: OutboxTable,
  shape: TableShape,
  start: StartPosition,
  unfilterable: readonly string[] = [],
): RowExpressions {
  const typeOf = (name: string) => columnOf(shape, name).type
  const payload = payloadText(table, shape)
  const key = table.key === null ? 'null::text' : `${column(table.key)}::text`
  const createdAt = createdAtExpression(table, shape)
  const type = typeExpression(table)
  const stamp = stampUnless(unfilterable, table, stampExpression(table, shape, { type, key }))
  const sort = sortExpressions(table, shape)
  const idText = `(${column(table.id)})::text`
  const record = `${idText} as "outboxId", ${type} as type, ${key} as key,
      ${createdAt} as "createdAt", ${stamp} as stamp, octet_length(${payload}) as bytes,
      case when octet_length(${payload}) <= $1 then ${payload} end as raw`
  const filtered = filterExpression(table, unfilterable)
  const begins = startExpression(table, shape, start)
  const waits = waitsExpression(table)
  return {
    waits: `${waits}${filtered}${begins}`,
    mayWait: `${waits}${begins}`,
    filtered,
    key,
    line: `hashtextextended(${key}, 0)`,
    type,
    payload,
    createdAt,
    stamp,
    record,
    idType: typeOf(table.id),
    idText,
    sort,
  }
}

// Values of the file stand as literals, so that the planner can prove that a partial index on the waiting rows fits.
function waitsExpression({ state }: OutboxTable): string {
  if (state === null) return 'true'
  if (state.kind === 'timestamp') return `${column(state.column)} is null`
  const values = state.waiting.filter((value) => value !== null)
  const isOne = values.length === 1 ? `= ${literals(values)}` : `in (${literals(values)})`
  const either = [
    ...(values.length > 0 ? [`${column(state.column)} ${isOne}`] : []),
    ...(state.waiting.includes(null) ? [`${column(state.column)} is null`] : []),
  ]
  return `(${either.join(' or ')})`
}

/** The order in which conditions are evaluated is the planner's, but for that of a case. */
function filterExpression({ filter, id }: OutboxTable, unfilterable: readonly string[]): string {
  if (filter === null) return ''
  if (unfilterable.length === 0) return ` and (${filter}\n)`
  return ` and case when ${column(id)}::text in (${literals(unfilterable)}) then true else (${filter}\n) end`
}

/** A stamp of a kind of its own says nothing against the row, wherever it is known. */
function stampUnless(unfilterable: readonly string[], { id }: OutboxTable, stamp: string): string {
  if (unfilterable.length === 0) return stamp
  return `case when ${column(id)}::text in (${literals(unfilterable)}) then 'unreadable' else ${stamp} end`
}

/** Never NULL: a record without a type is refused by name, not by the ledger's constraint. */
function typeExpression({ type }: OutboxTable): string {
  if (type.kind === 'constant') return `${literal(type.type)}::text`
  const text = `coalesce(${column(type.column)}::text, '')`
  if (type.values.size === 0) return text
  const cases = [...type.values].map(([from, to]) => `when ${literal(from)} then ${literal(to)}`)
  return `case ${text} ${cases.join(' ')} else ${text} end`
}

/** Years 1 to 9999: outside, to_timestamp throws and would take the whole batch with it. */
const leastSecond = -62_135_596_800
const mostSecond = 253_402_300_799

function createdAtExpression({ createdAt }: OutboxTable, shape: TableShape): string {
  if (createdAt === null) return 'null::text'
  const at = column(createdAt.column)
  if (createdAt.unit !== null) {
    const perSecond = unitsPerSecond[createdAt.unit]
    const inRange = `${at} between ${leastSecond * perSecond} and ${mostSecond * perSecond}`
    return `case when ${inRange} then ${iso(`to_timestamp(${at}::numeric / ${perSecond}) at time zone 'UTC'`)} end`
  }
  const zoned = columnOf(shape, createdAt.column).baseType === 'timestamp with time zone'
  const instant = zoned ? at : `${at}::timestamp at time zone ${literal(createdAt.timezone)}`
  return `case when isfinite(${at}) then ${iso(`(${instant}) at time zone 'UTC'`)} end`
}

function payloadText({ payload }: OutboxTable, shape: TableShape): string {
  if (payload.kind === 'column') {
    const { baseType } = columnOf(shape, payload.column)
    return baseType === 'bytea' ? column(payload.column) : `${column(payload.column)}::text`
  }
  if (payload.columns === null) return 'row_to_json(o)::text'
  // row_to_json prints numeric with its own digits and times with their offset, as a cast to text would; and unlike
  // json_build_object it takes any number of columns.
  const named = [...payload.columns].map(([name, from]) => `${column(from)} as ${quoteIdentifier(name)}`)
  return `(select row_to_json(built)::text from (select ${named.join(', ')}) built)`
}

/** The number of the transaction that wrote the row, in 64 bits: xmin has 32, and is never that far behind the next. */
export const transactionOfRow = `(select pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
  - (((select pg_snapshot_xmax(pg_current_snapshot())::text::bigint) - o.xmin::text::bigint) & 4294967295)`

function sortExpressions(table: OutboxTable, shape: TableShape): SortValue[] {
  const byColumn = (name: string) => ({ expression: column(name), type: columnOf(shape, name).type })
  const ofSystem = (expression: string, type: string) => ({ expression, type })
  const byTransaction = saysTaken(table) || table.sequence !== null ? [] : [ofSystem(transactionOfRow, 'bigint')]
  // Within one transaction: the declared order, or that of its statements.
  const within = table.sequence ?? table.order ?? (byTransaction.length > 0 ? null : table.id)
  const second = within === null ? ofSystem('o.cmin::text::integer', 'integer') : byColumn(within)
  return [...byTransaction, second, ...(within === table.id ? [] : [byColumn(table.id)])]
}
