import { areOtherRowsSql } from '../ledger/rowConflicts.ts'
import type { RowOutcome, RowStatus } from '../model/outbox.ts'
import { endStates, isEndState, type State, states } from '../model/submission.ts'
import { type Database, quoteIdentifier } from '../postgres/database.ts'
import {
  columnOf,
  isJsonColumn,
  literalListSql,
  nowForColumnSql,
  prefixedColumnSql,
  type TableShape,
} from './columns.ts'
import type { OpenTable } from './openTable.ts'
import type { OutboxTable, WrittenColumn } from './outboxTable.ts'
import { stateExpressions } from './stateForms.ts'

const statementMaxMs = 10_000

/** Opens a transaction that writes back. Postgres ends one that takes longer, or whose daemon stopped within it. */
export const writeBackOpeningSql = `set local statement_timeout = ${statementMaxMs}; set local idle_in_transaction_session_timeout = ${statementMaxMs}`

/**
 * Writes states to their rows, except to rows that another session has locked.
 * @returns the outcomes in the order of the statuses
 */
export async function writeStatesToRows(
  db: Database,
  table: OpenTable,
  statuses: readonly RowStatus[],
): Promise<RowOutcome[]> {
  const writing = writeBackStatements(table)
  if (writing === null) return statuses.map(() => 'written')
  await db.query(`set local lock_timeout = '1s'`)
  const { rows } = await db.query<{ outboxId: string; outcome: RowOutcome }>(writing.report, [
    JSON.stringify(statuses.filter(({ state }) => writing.states.has(state))),
  ])
  // Deferred triggers of the table run now, while no record is locked and no lock is waited for longer than a second.
  await db.query('set constraints all immediate')
  const outcomes = new Map(rows.map(({ outboxId, outcome }) => [outboxId, outcome]))
  // A state that no column shows counts as written.
  return statuses.map(({ outboxId }) => outcomes.get(outboxId) ?? 'written')
}

export type WriteBackStatements = NonNullable<ReturnType<typeof writeBackStatements>>

/** Null if no column is written. $1 has the statuses as JSON. */
export function writeBackStatements({ table, shape, rows }: OpenTable) {
  const { waits, created } = rows
  const form = stateExpressions(table.state)
  const assignments = writeBackAssignments(table, shape)
  if (assignments.length === 0) return null
  const { from, id, idText, idType: type } = rows
  const set = `update ${shape.qualified} o set ${assignments.map(({ column, castValueSql }) => `${quoteIdentifier(column)} = ${castValueSql}`).join(', ')}`
  const open = form?.openSql ?? 'true'
  // A view's trigger may return the old row.
  const stateColumn = shape.hasSystemColumns ? assignments.find(({ column }) => column === form?.column) : undefined
  const [now, given] =
    stateColumn === undefined
      ? ['null', 'null']
      : [prefixedColumnSql(stateColumn.column), stateColumn.castValueSql].map((sql) => `lower(${sql}::text)`)
  const same = `not (${areOtherRowsSql('r.created', created)})`
  return {
    mark: `${set} from ${rowStatusesSql} where ${id} = r."outboxId"::${type} and ${open} and ${same}
      returning r."outboxId", true as written`,
    /**
     * Selects the rows in $1 that still wait after `mark`, whose RETURNING shows our values even if a trigger ignores
     * them or sets them back.
     */
    unmarked: `select ${idText} as "outboxId" from ${from} where ${waits} and ${id} = any($1::${type}[])`,
    /**
     * Writes to rows that are not locked, and returns the `RowOutcome` of each id. A row is not written if it already
     * says that its record has ended.
     */
    report: `with r as materialized (select * from ${rowStatusesSql}),
      held as materialized (
        select r.*, ${now} as before, ${given} as given
        from r join ${shape.qualified} o on ${id} = r."outboxId"::${type} where ${open} and ${same}
        for no key update of o skip locked
      ), written as (
        ${set} from held r where ${id} = r."outboxId"::${type}
        returning r."outboxId", r.before is distinct from r.given and ${now} is not distinct from r.before as "isSetBack"
      )
      select r."outboxId", case
          when not written."isSetBack" then 'written'
          when held."outboxId" is not null then 'unchanged'
          when unheld.same is null then 'gone'
          when not unheld.same then 'another'
          when not unheld.open then 'written'
          else 'locked'
        end as outcome
      from r left join held using ("outboxId") left join written using ("outboxId")
        left join lateral (
          select ${open} as open, ${same} as same from ${shape.qualified} o where ${id} = r."outboxId"::${type}
        ) unheld on held."outboxId" is null`,
    states: new Set<State>(states.filter((each) => matters(table, each))),
  }
}

/** Returns `queued` if the state column has no value for the state, so that a captured row no longer waits. */
export const toMarkedState = ({ state }: OutboxTable, at: State): State =>
  stateExpressions(state)?.isWrittenAt(at) === false ? 'queued' : at

function matters({ state, write }: OutboxTable, at: State): boolean {
  return (
    stateExpressions(state)?.isWrittenAt(at) || write.some(({ on }) => on === null || on.includes(at) || isEndState(at))
  )
}

/** The statuses in $1, as rows r. */
export const rowStatusesSql = `json_to_recordset($1) as r("outboxId" text, state text, "transactionId" text, "errorCode" text, error text, created text)`

export interface Assignment {
  readonly column: string
  /** SQL of the value, for a row r of `rowStatusesSql` and a row o of the table. */
  readonly valueSql: string
  readonly castValueSql: string
  /** True if a cut value would mean a different state, transaction or error. */
  readonly mustBeWhole: boolean
}

export function writeBackAssignments({ state, write, createdAt }: OutboxTable, shape: TableShape): Assignment[] {
  const timezone = createdAt?.timezone ?? 'UTC'
  const form = stateExpressions(state)
  const assign = (column: string, valueSql: string, mustBeWhole: boolean): Assignment => {
    const type = columnOf(shape, column)
    // Enums need a cast from text. A cast to the exact type cuts text that is too long for a varchar, which only messages
    // may be: without a length, Postgres refuses the value.
    const castValueSql = `(${valueSql})::${mustBeWhole ? type.type : type.exactType}`
    return { column, valueSql, castValueSql, mustBeWhole: mustBeWhole && !isJsonColumn(type) }
  }
  return [
    ...(form === null || form.writes.length === 0
      ? []
      : [
          assign(
            form.column,
            toColumnValueSql(form.markSql(shape, timezone), shape, form.column),
            form.writes !== 'time',
          ),
        ]),
    ...write.map((each) =>
      assign(each.column, writtenValue(each, shape, timezone), /^(state|transaction_id|error_code)$/.test(each.what)),
    ),
  ]
}

function writtenValue({ column: name, what, on }: WrittenColumn, shape: TableShape, timezone: string): string {
  const value = toColumnValueSql({ ...sources, now: nowForColumnSql(shape, name, timezone) }[what], shape, name)
  if (on === null) return value
  const now = prefixedColumnSql(name)
  const kept = what === 'now' ? `coalesce(${now}, ${value})` : value
  const typed = what === 'now' || isJsonColumn(columnOf(shape, name)) ? now : `${now}::text`
  return `case when r.state in (${literalListSql(on)}) then ${kept} when r.state in (${literalListSql(endStates)}) then null else ${typed} end`
}

/** Encodes a value for a JSON column. Does nothing for other columns. */
function toColumnValueSql(valueSql: string, shape: TableShape, name: string): string {
  const type = columnOf(shape, name)
  return isJsonColumn(type) ? `to_jsonb(${valueSql})::${type.type}` : valueSql
}

const sources = { state: 'r.state', transaction_id: 'r."transactionId"', error_code: 'r."errorCode"', error: 'r.error' }

/** Characters that must have room in a column, because a cut id or code would be another one. */
const charsNeeded: Partial<Record<WrittenColumn['what'], number>> = { transaction_id: 36, error_code: 4 }

/** Returns clauses that follow the table's name, for columns with too little room. */
export function findNarrowColumnClauses({ write }: OutboxTable, shape: TableShape): string[] {
  return write.flatMap(({ column, what }) => {
    const { exactType } = columnOf(shape, column)
    const width = /^character(?: varying)?\((\d+)\)$/.exec(exactType)?.[1]
    const needed = charsNeeded[what] ?? 0
    if (width === undefined || Number(width) >= needed) return []
    return [`has "${column}" of type ${exactType}, too narrow for ${what}: make room for ${needed} characters`]
  })
}
