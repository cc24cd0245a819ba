import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import { columnTextSql } from './columns.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { notBeforeStartSql } from './rowExpressions.ts'
import { inSliceSql, nullIfCanceled, readSlice, walkSlices } from './slices.ts'
import { stateExpressions } from './stateForms.ts'

export interface UnknownStatus {
  /** Cut to 40 characters; null for NULL. */
  status: string | null
  rows: number
  firstId: string
}

const statusesMax = 10

/**
 * Counts rows whose status `outbox.yaml` does not name. Such a row neither waits nor is under way, so no claim reads
 * it. Null if `outbox.yaml` names only the statuses of waiting rows, or none.
 */
export function unknownStatusCountsSql({ table, shape, rows, served }: OpenTable): string | null {
  const form = stateExpressions(table.state)
  const isUnknown = form?.unknownSql(shape) ?? null
  if (form === null || isUnknown === null) return null
  const { from, id, idText, filtered } = rows
  return `select left(${columnTextSql(form.column, shape)}, 40) as status, count(*)::int as rows,
       (array_agg(${idText} order by ${id}))[1] as "firstId"
     from ${from} where ${isUnknown}${filtered}${notBeforeStartSql(table, shape, served.start)}${inSliceSql(rows, 1)}
     group by 1 order by 2 desc limit ${statusesMax}`
}

export interface UnknownStatusCount {
  statuses: readonly UnknownStatus[]
  /** The id from which to continue; null if the whole table was read. */
  after: string | null
}

export const noUnknownStatuses: UnknownStatusCount = { statuses: [], after: null }

/**
 * A slice that takes too long to read ends the search.
 * @param begun the result of the previous search
 */
export async function countUnknownStatuses(
  outbox: Outbox,
  begun: UnknownStatusCount,
  { goOn, sliceRows }: { goOn(): Promise<boolean>; sliceRows: number },
): Promise<UnknownStatusCount> {
  let { statuses } = begun.after === null ? noUnknownStatuses : begun
  const readNext = (from: string | null) =>
    nullIfCanceled(() =>
      outbox.ask(async (table) => {
        const sql = unknownStatusCountsSql(table)
        if (sql === null) return null
        const { upTo } = await readSlice(table.db, table.rows, from, sliceRows)
        const { rows } = await table.db.query<UnknownStatus>(sql, [from, upTo])
        statuses = addCounts(statuses, rows)
        return upTo
      }),
    )
  return { after: await walkSlices(begun.after, readNext, goOn), statuses }
}

function addCounts(before: readonly UnknownStatus[], found: readonly UnknownStatus[]): UnknownStatus[] {
  const all = new Map(before.map((each) => [each.status, each]))
  for (const { status, rows, firstId } of found) {
    const known = all.get(status)
    if (known !== undefined) all.set(status, { ...known, rows: known.rows + rows })
    else if (all.size < statusesMax) all.set(status, { status, rows, firstId })
  }
  return [...all.values()]
}

export function unknownStatusMessage({ statuses, after }: UnknownStatusCount): string {
  const named = statuses.map(
    ({ status, rows, firstId }) =>
      `${status === null ? 'NULL' : `"${status}"`} (${rows} ${rows === 1 ? 'row' : 'rows'}, the first is ${firstId})`,
  )
  return `rows have a status that is not configured, so they are never sent: ${named.join(', ')}${after === null ? '' : ', and perhaps more'}`
}

export const unknownStatusAdvice =
  'Correct the status of rows that are to be sent. Leave others out by a filter in outbox.yaml, or give them a status that is configured.'

export async function updateUnknownStatusProblem(ledger: Database, count: UnknownStatusCount): Promise<void> {
  if (count.statuses.length > 0)
    await raiseProblems(ledger, [
      { kind: 'unknown_status', subject: '', detail: unknownStatusMessage(count), retryInMs: null },
    ])
  else if (count.after === null) await clearProblems(ledger, 'unknown_status', null)
}
