import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import { findDuplicates } from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'
import type { SeenRow } from './ledgerMemory.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { nullIfCanceled, readSlice, sliceStatements } from './slices.ts'

/** A slice of rows behind a position, where nobody looks again. */
export interface SliceBehindCursor {
  /** Ids of rows that wait there and that the ledger does not know, in order. */
  unknown: string[]
  /** The id that ends the slice; null for the last. */
  upTo: string | null
}

/** The position comes first, then the bounds of the slice. Asks nothing of a row but whether it waits. */
export function behindCursorSql({ rows }: OpenTable, after: boolean, upTo: boolean): string {
  const { from, waits, id, idText, sort, order } = rows
  const position = sort.map(({ type }, i) => `$${i + 1}::${type}`).join(', ')
  return `select ${idText} as "outboxId", '' as stamp, null as "createdAt" from ${from}
    where ${waits} and (${order}) <= (${position})${sliceStatements(rows).within(after, upTo, sort.length + 1)} order by ${id}`
}

/**
 * Reads the rows of a slice that wait behind the position up to which the table was read, and that the ledger does not know. All rows
 * there were in the ledger before the position passed them; so one that is not came later, by a way that the order does not foresee:
 * it was loaded with a number of its own, a partition was attached, a policy lifted. Two rows of one id are a conflict, and passed.
 *
 * @param after the id that ended the slice before
 * @returns null if rows say themselves that they wait, there is no position yet, or the slice takes too long to read
 */
export function readSliceBehindCursor(
  outbox: Outbox,
  after: string | null,
  sliceRows: number,
): Promise<SliceBehindCursor | null> {
  return nullIfCanceled(() =>
    outbox.ask(async (table) => {
      const position = (await table.scan?.readPosition()) ?? null
      if (position === null) return null
      const { upTo, bounds } = await readSlice(table.db, sliceStatements(table.rows), after, sliceRows)
      const sql = behindCursorSql(table, after !== null, upTo !== null)
      const { rows } = await table.db.query<SeenRow>(sql, [...position, ...bounds])
      const { known } = await table.memory.findKnown(rows)
      const repeated = findDuplicates(rows.map(({ outboxId }) => outboxId))
      const unknown = rows.flatMap(({ outboxId }) => (known.has(outboxId) || repeated.has(outboxId) ? [] : [outboxId]))
      return { unknown, upTo }
    }),
  )
}

/** Rows that wait behind the position up to which a table was read. */
export interface RowsBehindCursor {
  rows: number
  /** Null if there is none. */
  firstId: string | null
  /** The id from which to go on; null if the table's end was reached, or it has no position. */
  after: string | null
}

/**
 * Reads the outbox in slices, in the order of its ids, up to the first slice that has such rows.
 *
 * @param begin the id after which to begin; null: at the first row
 * @param goOn  asked between two slices: false gives up
 */
export async function findRowsBehindCursor(
  outbox: Outbox,
  begin: string | null,
  { goOn, sliceRows }: { goOn(): Promise<boolean>; sliceRows: number },
): Promise<RowsBehindCursor> {
  let after = begin
  for (;;) {
    const slice = await readSliceBehindCursor(outbox, after, sliceRows)
    if (slice === null) return { rows: 0, firstId: null, after: null }
    const { unknown, upTo } = slice
    if (unknown.length > 0 || upTo === null) return { rows: unknown.length, firstId: unknown[0] ?? null, after: upTo }
    after = upTo
    if (!(await goOn())) return { rows: 0, firstId: null, after }
  }
}

/** In words, for the problem and for `check`; without the client's data. */
export function rowsBehindCursorMessage({ rows, firstId, after }: RowsBehindCursor): string {
  const many = after === null ? `${rows}` : `${rows} or more`
  return `${many} ${rows === 1 && after === null ? 'row' : 'rows'} waited behind the position up to which the table had been read (the first is ${firstId}): rows came there that were loaded with ids or numbers of their own, or by a partition, a table that inherits, or a policy`
}

/** Other comparisons are an hour apart: this one shall soon say that it is over. */
const compareAgainMinutes = 5

/** Says so, and has all instances read the table from its beginning: what the ledger knows is passed over, the others are taken. */
export async function rereadFromStart(db: Database, found: RowsBehindCursor): Promise<void> {
  await raiseProblems(db, [
    { kind: 'rows_passed_over', subject: '', detail: rowsBehindCursorMessage(found), retryInMs: null },
  ])
  await db.query(
    `update outboxd.outbox set readings = readings + 1,
       compared_at = clock_timestamp() - interval '1 hour' + $1 * interval '1 minute' where is_current`,
    [compareAgainMinutes],
  )
}

/** None was found: those that were told are taken. */
export const clearRowsBehindCursor = (db: Database): Promise<void> => clearProblems(db, 'rows_passed_over', null)
