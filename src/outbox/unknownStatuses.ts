import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import { textSql } from './columns.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { startSql } from './rowExpressions.ts'
import { nullIfCanceled, readSlice, sliceStatements } from './slices.ts'
import { formOf } from './stateForms.ts'

/** A status that the description does not name, and the rows of a slice that have it. */
export interface UnknownStatus {
  /** Cut to 40 characters; null for NULL. */
  status: string | null
  rows: number
  firstId: string
}

/** Statuses that are told apart, in a slice and in the problem. */
const statusesMax = 10

/**
 * How to count rows whose status is none of those that the description names: they neither wait nor are under way, so nobody ever
 * looks at them. Null if the table has no such column, or the description names only the statuses of rows that wait.
 */
export function unknownStatusSql(
  { table, shape, rows: expressions, served }: OpenTable,
  after: boolean,
  upTo: boolean,
): string | null {
  const form = formOf(table.state)
  const isUnknown = form?.unknownSql(shape) ?? null
  if (form === null || isUnknown === null) return null
  const { from, id, idText, filtered } = expressions
  return `select left(${textSql(form.column, shape)}, 40) as status, count(*)::int as rows,
       (array_agg(${idText} order by ${id}))[1] as "firstId"
     from ${from} where ${isUnknown}${filtered}${startSql(table, shape, served.start)}${sliceStatements(expressions).within(after, upTo, 1)}
     group by 1 order by 2 desc limit ${statusesMax}`
}

/**
 * Counts the rows of a slice, in the order of ids, by statuses that the description does not name.
 *
 * @param after the id that ended the slice before
 * @returns null if rows have no such status, or the slice takes too long to read
 */
function readUnknownStatuses(
  outbox: Outbox,
  after: string | null,
  sliceRows: number,
): Promise<{ unknown: UnknownStatus[]; upTo: string | null } | null> {
  return nullIfCanceled(() =>
    outbox.ask(async (table) => {
      if (unknownStatusSql(table, false, false) === null) return null
      const { upTo, bounds } = await readSlice(table.db, sliceStatements(table.rows), after, sliceRows)
      const sql = unknownStatusSql(table, after !== null, upTo !== null)
      const { rows } = sql === null ? { rows: [] } : await table.db.query<UnknownStatus>(sql, bounds)
      return { unknown: rows, upTo }
    }),
  )
}

/** What was found of unknown statuses so far. */
export interface UnknownStatusCount {
  statuses: readonly UnknownStatus[]
  /** The id from which to go on; null if the table's end was reached. */
  after: string | null
}

export const noUnknownStatuses: UnknownStatusCount = { statuses: [], after: null }

/** Reads the outbox in slices, in the order of its ids, and counts rows with a status that nobody configured. */
export async function countUnknownStatuses(
  outbox: Outbox,
  begun: UnknownStatusCount,
  { goOn, sliceRows }: { goOn(): Promise<boolean>; sliceRows: number },
): Promise<UnknownStatusCount> {
  let { statuses, after } = begun.after === null ? noUnknownStatuses : begun
  for (;;) {
    const slice = await readUnknownStatuses(outbox, after, sliceRows)
    if (slice === null) return { statuses, after: null }
    statuses = joined(statuses, slice.unknown)
    after = slice.upTo
    if (after === null || !(await goOn())) return { statuses, after }
  }
}

function joined(before: readonly UnknownStatus[], found: readonly UnknownStatus[]): UnknownStatus[] {
  const all = new Map(before.map((each) => [each.status, each]))
  for (const { status, rows, firstId } of found) {
    const known = all.get(status)
    if (known !== undefined) all.set(status, { ...known, rows: known.rows + rows })
    else if (all.size < statusesMax) all.set(status, { status, rows, firstId })
  }
  return [...all.values()]
}

/** In words, for the problem and for `check`. */
export function unknownStatusMessage({ statuses, after }: UnknownStatusCount): string {
  const named = statuses.map(
    ({ status, rows, firstId }) =>
      `${status === null ? 'NULL' : `"${status}"`} (${rows} ${rows === 1 ? 'row' : 'rows'}, the first is ${firstId})`,
  )
  return `rows have a status that is not configured, so they are never sent: ${named.join(', ')}${after === null ? '' : ', and perhaps more'}`
}

export const unknownStatusAdvice =
  'Correct the status of rows that are to be sent. Leave others out by a filter in outbox.yaml, or give them a status that is configured.'

/** Raises the problem, or ends it if the whole table was read and no such row was found. */
export async function updateUnknownStatusProblem(ledger: Database, count: UnknownStatusCount): Promise<void> {
  if (count.statuses.length > 0)
    await raiseProblems(ledger, [
      { kind: 'unknown_status', subject: '', detail: unknownStatusMessage(count), retryInMs: null },
    ])
  else if (count.after === null) await clearProblems(ledger, 'unknown_status', null)
}
