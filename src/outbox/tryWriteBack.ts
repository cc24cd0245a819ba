import type pg from 'pg'
import { boundText } from '../boundText.ts'
import { areOtherRows } from '../ledger/rowConflicts.ts'
import type { RowOutcome, RowStatus } from '../model/outbox.ts'
import { endStates, type State, states } from '../model/submission.ts'
import { beginTransaction, type Database, quoteIdentifier } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import { columnOf, type TableShape } from './columns.ts'
import { withSearchPathIfNeeded } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import type { OutboxTable, WrittenColumn } from './outboxTable.ts'
import { stateExpressions } from './stateForms.ts'
import {
  type Assignment,
  rowStatusesSql,
  toMarkedState,
  type WriteBackStatements,
  writeBackAssignments,
  writeBackStatements,
} from './writeBack.ts'

export type WriteBackTryResult =
  | { kind: 'never-written' }
  /** No row waits, or other sessions have locked all waiting rows. */
  | { kind: 'no-row' }
  | { kind: 'tried'; outboxId: string; refusals: { state: State; why: string }[] }

/** Writes each state that a row may reach to one waiting row, in a transaction that is rolled back. */
export async function tryWriteBack(outbox: Outbox): Promise<WriteBackTryResult> {
  const table = await outbox.open()
  const writing = writeBackStatements(table)
  if (writing === null) return { kind: 'never-written' }
  await using transaction = await beginTransaction(table.db) // never committed
  const { db } = transaction
  await db.query(`set local lock_timeout = '1s'; set local statement_timeout = '5s'`)
  const { from, waits, id, idType, idText, created } = table.rows
  const { rows } = await db.query<TriedRow>(
    `select ${idText} as "outboxId", ${created} as created from ${from} where ${waits} limit 1 for no key update of o skip locked`,
  )
  const [row] = rows
  if (row === undefined) return { kind: 'no-row' }
  // If rows are not marked on capture, reports write all states.
  const isMark = ({ state, by }: Step) =>
    table.form === 'marked' && by === 'mark' && toMarkedState(table.table, state) === state
  const refusals: { state: State; why: string }[] = []
  const form = stateExpressions(table.table.state)
  const createdSql = `select ${created} as created from ${from} where ${id} = $1::${idType}`
  for (const step of steps.filter(({ state }) => writing.states.has(state))) {
    const leavesQueue = form?.isWrittenAt(step.state) === true
    const why = await tryStep(
      db,
      { ...writing, createdSql },
      { ...step, by: isMark(step) ? 'mark' : 'report', leavesQueue, row },
    )
    if (why !== null) refusals.push({ state: step.state, why })
  }
  return { kind: 'tried', outboxId: row.outboxId, refusals }
}

interface TriedRow {
  outboxId: string
  created: string | null
}

interface Step {
  state: State
  by: 'mark' | 'report'
  /** True if the next step starts from the row as this step wrote it. */
  keepsRow: boolean
}

/** The states that capture writes, then the states under way, and then each end. */
const steps: readonly Step[] = [
  { state: 'rejected', by: 'mark', keepsRow: false },
  { state: 'queued', by: 'mark', keepsRow: true },
  { state: 'sending', by: 'report', keepsRow: true },
  { state: 'accepted', by: 'report', keepsRow: true },
  ...(['completed', 'failed', 'uncertain', 'discarded'] as const).map(
    (state): Step => ({ state, by: 'report', keepsRow: false }),
  ),
]

/** @returns why the write failed */
async function tryStep(
  db: Database,
  writing: WriteBackStatements & { createdSql: string },
  { state, by, keepsRow, leavesQueue, row }: Step & { leavesQueue: boolean; row: TriedRow },
): Promise<string | null> {
  await db.query('savepoint trial')
  const status = JSON.stringify([{ ...trialStatus(row.outboxId, state), created: row.created }])
  try {
    const { rows } = await db.query<{ written?: boolean; outcome?: RowOutcome }>(writing[by], [status])
    await db.query('set constraints all immediate')
    const isWritten = rows[0]?.written === true || rows[0]?.outcome === 'written'
    const [after] = (await db.query<{ created: string | null }>(writing.createdSql, [row.outboxId])).rows
    const isOther = areOtherRows(row.created, after?.created ?? null)
    const isWaiting = leavesQueue && (await db.query(writing.unmarked, [[row.outboxId]])).rowCount !== 0
    await db.query(keepsRow && isWritten && !isWaiting && !isOther ? 'release trial' : 'rollback to trial')
    if (!isWritten)
      return 'the update changes nothing: a BEFORE trigger suppresses it or sets the state back, or row-level security hides the row'
    if (isWaiting) return 'the row still waits after the update: a trigger ignores the value, or sets it back'
    return isOther ? changesRow : null
  } catch (error) {
    await db.query('rollback to trial')
    return `SQLSTATE ${errorCodeOf(error)}: ${boundText((error as Error).message, 200)}`
  }
}

const changesRow =
  'a trigger or a generated column then changes the created_at, by which outboxd recognises the row. So outboxd would write nothing more back to the row. In outbox.yaml, name a created_at that never changes'

const withId: ReadonlySet<State> = new Set(['accepted', 'completed', 'failed'])
const withError: ReadonlySet<State> = new Set(['rejected', 'failed', 'uncertain'])

const trialStatus = (outboxId: string, state: State): RowStatus => ({
  outboxId,
  state,
  transactionId: withId.has(state) ? '00000000-0000-4000-8000-000000000000' : null,
  errorCode: withError.has(state) ? 'E000' : null,
  error: withError.has(state) ? 'outboxd check tries what it may write' : null,
})

/** Works before any row exists. Returns clauses that follow the table's name. */
export async function findWriteBackProblemClauses(
  pool: pg.Pool,
  table: OutboxTable,
  shape: TableShape,
): Promise<string[]> {
  const problems = findNullProblems(table, shape)
  for (const assignment of writeBackAssignments(table, shape)) {
    const why = await whyNotStorable(withSearchPathIfNeeded(pool, shape), assignment, shape)
    const { column } = assignment
    if (why !== null)
      problems.push(
        `has "${column}" of type ${columnOf(shape, column).exactType}, which cannot take what outboxd writes: ${why}`,
      )
  }
  return problems
}

/** Computes what would be stored at each state. Does not read the table, because it may be locked. */
async function whyNotStorable(
  db: Database,
  { column, valueSql, castValueSql, mustBeWhole }: Assignment,
  shape: TableShape,
): Promise<string | null> {
  const [given, stored] = [`(${valueSql})::text`, `(${valueSql})::${columnOf(shape, column).exactType}::text`]
  const change = `pg_catalog.format('it would store %L as %L', ${given}, ${stored})`
  const changed = mustBeWhole ? `min(${change}) filter (where ${stored} <> ${given})` : 'null'
  const emptyRow = `(select null::${columnOf(shape, column).type} as ${quoteIdentifier(column)}) o`
  try {
    const { rows } = await db.query<{ changed: string | null }>(
      `select count(${castValueSql}), ${changed} as changed from ${rowStatusesSql} cross join ${emptyRow}`,
      [JSON.stringify(states.map((state) => trialStatus('', state)))],
    )
    return rows[0]?.changed ?? null
  } catch (error) {
    return `SQLSTATE ${errorCodeOf(error)}: ${(error as Error).message}`
  }
}

function findNullProblems({ state, write }: OutboxTable, shape: TableShape): string[] {
  const mustBeSet = (name: string) => columnOf(shape, name).notNull
  const neverWaits =
    state !== null && mustBeSet(state.column) && stateExpressions(state)?.waiting.every((value) => value === null)
  return [
    ...(neverWaits
      ? [
          `says that a row waits while "${state.column}" is NULL, but that column has a NOT NULL constraint: no row would ever wait`,
        ]
      : []),
    ...write
      .filter((each) => mustBeSet(each.column) && mayBeEmptied(each))
      .map(
        ({ column }) =>
          `has a NOT NULL constraint on "${column}", but outboxd writes NULL there if it has no value. Drop the constraint, or name another column`,
      ),
  ]
}

const mayBeEmptied = ({ what, on }: WrittenColumn): boolean =>
  !(what === 'state' || what === 'now') || (on !== null && endStates.some((state: State) => !on.includes(state)))
