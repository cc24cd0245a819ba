import {
  awaitsRepairSql,
  differsInContentSql,
  mayBeEditedSql,
  sameStampKindSql,
  stampsAgreeSql,
} from '../ledger/rowConflicts.ts'
import { endStates, type State, states } from '../model.ts'
import { quoteIdentifier } from '../postgres/database.ts'
import { columnOf, columnSql, isJson, literalSql, literalsSql, nowSql, type TableShape } from './columns.ts'
import type { OpenTable } from './openTable.ts'
import type { OutboxTable, WrittenColumn } from './outboxTable.ts'
import { formOf } from './stateForms.ts'

/** How states are written to rows. */
export interface WriteStatements {
  /**
   * Marks rows that were claimed. $1: the statuses as JSON. Gives the ids of those that were changed, so that they no
   * longer wait.
   */
  readonly mark: string
  /**
   * Tells rows, but for those that somebody has locked. $1 as above. Gives each id with what became of it: `held`, we
   * had its lock, and `written`, it was changed.
   */
  readonly report: string
  /**
   * Says why rows could not be held. $1: the statuses as JSON. Gives those that are there: whether they are to be told at
   * all (`open`), and are the ones that are meant (`same`), or have other contents alone (`differs`),
   * the session that has each locked, if that can be seen, whether it is a daemon's (`isOurs`), and whether row-level security holds for us.
   */
  readonly unheld: string
  /** The states that change something in the table. */
  readonly states: ReadonlySet<State>
}

/** Makes the statements that write states to rows; null if the description has nothing to write. A row of the same id with another stamp is told nothing. */
export function writeStatements({ table, shape, rows, served }: OpenTable): WriteStatements | null {
  const { waits, stamp } = rows
  const { write } = table
  const form = formOf(table.state)
  const assignments = [
    ...(form === null || form.writes.length === 0 ? [] : [assign(shape, form.column, form.markSql(shape))]),
    ...write.map((each) => assign(shape, each.column, writtenValue(each, shape))),
  ]
  if (assignments.length === 0) return null
  const { id, idType: type } = rows
  const set = `update ${shape.qualified} o set ${assignments.join(', ')}`
  const statuses = `json_to_recordset($1) as r("outboxId" text, state text, "transactionId" text, "errorCode" text, error text, stamp text)`
  const open = form?.openSql ?? 'true'
  // A row that waits may be another, which must not be told that it is done; one that does not was taken, and edited since.
  const isTaken = `(${waits}) is not true`
  const isMeant = served.rowsEdited ? 'true' : awaitsRepairSql('r.state')
  // The stamp reads the whole row: once is enough.
  const ofRow = (said: string) => `(select ${said} from (select ${stamp} as stamp offset 0) here)`
  const differs = ofRow(differsInContentSql('r.stamp', 'here.stamp'))
  const same = ofRow(
    `(${stampMatchesSql('here.stamp')} or ${differsInContentSql('r.stamp', 'here.stamp')} and ${isTaken}
      or ${mayBeEditedSql('r.stamp', 'here.stamp')} and ${isMeant})`,
  )
  return {
    mark: `${set} from ${statuses} where ${id} = r."outboxId"::${type} and ${open} and ${same}
      returning r."outboxId", (${waits}) is not true as written`,
    report: `with r as materialized (select * from ${statuses}),
      held as materialized (
        select r.* from r join ${shape.qualified} o on ${id} = r."outboxId"::${type} where ${open} and ${same}
        for no key update of o skip locked
      ), written as (
        ${set} from held r where ${id} = r."outboxId"::${type} returning r."outboxId"
      )
      select "outboxId", "outboxId" in (select "outboxId" from held) as held,
        "outboxId" in (select "outboxId" from written) as written from r`,
    unheld: `select r."outboxId", ${open} as open, ${same} as same, ${differs} as differs, row_security_active(${literalSql(shape.qualified)}::regclass) as secured,
        holder.pid as holder, holder.application like 'outboxd%' as "isOurs"
      from json_to_recordset($1) as r("outboxId" text, state text, stamp text)
        join ${shape.qualified} o on ${id} = r."outboxId"::${type}
        left join lateral (
          select l.pid, (select application_name from pg_stat_activity a where a.pid = l.pid) as application
          from (select ${shape.hasSystemColumns ? lockHolder : 'null::int'} as pid) l
        ) holder on true`,
    states: new Set(states.filter((each) => matters(table, each))),
  }
}

/** Who locks a row alone writes the number of its transaction into it; several at a time show as nobody. */
export const lockHolder = `(select pid from pg_locks where locktype = 'transactionid' and granted and transactionid = o.xmax limit 1)`

/** Stamps of two kinds cannot be compared; rows that were captured before there were any have none. */
const stampMatchesSql = (stamp: string): string =>
  `(r.stamp is null or not ${sameStampKindSql('r.stamp', stamp)} or ${stampsAgreeSql('r.stamp', stamp)})`

function matters({ state, write }: OutboxTable, at: State): boolean {
  return formOf(state)?.isWrittenAt(at) || write.some(({ on }) => on === null || on.includes(at) || isEnd(at))
}

const isEnd = (state: State): boolean => endStates.some((each) => each === state)

// Cast from text to the exact type: enums and flags need it, and what is too long for a varchar is cut, not refused.
function assign(shape: TableShape, name: string, value: string): string {
  const type = columnOf(shape, name)
  return `${quoteIdentifier(name)} = ${isJson(type) ? `to_jsonb(${value})` : `(${value})`}::${type.exactType}`
}

function writtenValue({ column: name, what, on }: WrittenColumn, shape: TableShape): string {
  const value = { ...sources, now: nowSql(shape, name) }[what]
  if (on === null) return value
  const kept = what === 'now' ? `coalesce(${columnSql(name)}, ${value})` : value
  const typed = what === 'now' ? columnSql(name) : `${columnSql(name)}::text`
  return `case when r.state in (${literalsSql(on)}) then ${kept} when r.state in (${literalsSql(endStates)}) then null else ${typed} end`
}

const sources = { state: 'r.state', transaction_id: 'r."transactionId"', error_code: 'r."errorCode"', error: 'r.error' }
