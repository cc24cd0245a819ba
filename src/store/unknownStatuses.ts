import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { UnknownStatus } from '../outbox/unknownStatuses.ts'
import type { Database } from '../postgres/database.ts'

/** What was found of unknown statuses so far. */
export interface StatusCount {
  statuses: readonly UnknownStatus[]
  /** The id from which to go on; null if the table's end was reached. */
  after: string | null
}

export const noStatuses: StatusCount = { statuses: [], after: null }

/** Statuses that are named. */
const statusesMax = 10

/** Reads the outbox in slices, in the order of its ids, and counts rows with a status that nobody configured. */
export async function countUnknownStatuses(
  outbox: Pick<Outbox, 'readUnknownStatuses'>,
  begun: StatusCount,
  { goOn, sliceRows }: { goOn(): Promise<boolean>; sliceRows: number },
): Promise<StatusCount> {
  let { statuses, after } = begun.after === null ? noStatuses : begun
  for (;;) {
    const slice = await outbox.readUnknownStatuses(after, sliceRows)
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
export function unknownStatusMessage({ statuses, after }: StatusCount): string {
  const named = statuses.map(
    ({ status, rows, firstId }) =>
      `${status === null ? 'NULL' : `"${status}"`} (${rows} ${rows === 1 ? 'row' : 'rows'}, the first is ${firstId})`,
  )
  return `rows have a status that is not configured, so they are never sent: ${named.join(', ')}${after === null ? '' : ', and perhaps more'}`
}

export const unknownStatusAdvice =
  'Correct the status of rows that are to be sent. Leave others out by a filter in outbox.yaml, or give them a status that is configured.'

/** Raises the problem, or ends it if the whole table was read and no such row was found. */
export async function tellUnknownStatuses(ledger: Database, count: StatusCount): Promise<void> {
  if (count.statuses.length > 0)
    await raiseProblems(ledger, [
      { kind: 'unknown_status', subject: '', detail: unknownStatusMessage(count), retryInMs: null },
    ])
  else if (count.after === null) await clearProblems(ledger, 'unknown_status', null)
}
