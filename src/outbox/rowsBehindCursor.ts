import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import { findRepeatedIds } from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'
import type { SeenRow } from './ledgerMemory.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { inSliceSql, nullIfCanceled, readSlice, walkSlices } from './slices.ts'

/** The parameters are the position's first, then the slice's. */
export function behindCursorSql({ rows }: OpenTable): string {
  const { from, waits, id, idText, sort, order } = rows
  const position = sort.map(({ type }, i) => `$${i + 1}::${type}`).join(', ')
  return `select ${idText} as "outboxId", '' as stamp, null as "createdAt" from ${from}
    where ${waits} and (${order}) <= (${position})${inSliceSql(rows, sort.length + 1)} order by ${id}`
}

/**
 * Reads the waiting rows of a slice that lie behind the cursor and are not in the ledger. Null without a cursor, or if
 * time ran out.
 *
 * The ledger knew all rows there when the cursor passed them, so such a row came later. It was loaded with its own
 * number, a partition was attached, or a policy was lifted. Two rows of one id are a conflict, and do not count.
 */
export function readSliceBehindCursor(
  outbox: Outbox,
  after: string | null,
  sliceRows: number,
): Promise<{ unknown: string[]; upTo: string | null } | null> {
  return nullIfCanceled(() =>
    outbox.ask(async (table) => {
      const position = (await table.scan?.readPosition()) ?? null
      if (position === null) return null
      const { upTo } = await readSlice(table.db, table.rows, after, sliceRows)
      const { rows } = await table.db.query<SeenRow>(behindCursorSql(table), [...position, after, upTo])
      const { known } = await table.memory.findKnown(rows)
      const duplicates = findRepeatedIds(rows.map(({ outboxId }) => outboxId))
      const ids = rows.map(({ outboxId }) => outboxId)
      return { unknown: ids.filter((id) => !known.has(id) && !duplicates.has(id)), upTo }
    }),
  )
}

export interface RowsBehindCursor {
  rows: number
  firstId: string | null
  /** The id from which to continue; null if the whole table was read. */
  after: string | null
}

export async function findRowsBehindCursor(
  outbox: Outbox,
  begin: string | null,
  { goOn, sliceRows }: { goOn(): Promise<boolean>; sliceRows: number },
): Promise<RowsBehindCursor> {
  let found: string[] = []
  const after = await walkSlices(
    begin,
    async (from) => {
      const slice = await readSliceBehindCursor(outbox, from, sliceRows)
      found = slice?.unknown ?? []
      return slice?.upTo ?? null
    },
    async () => found.length === 0 && (await goOn()),
  )
  return { rows: found.length, firstId: found[0] ?? null, after }
}

export function rowsBehindCursorMessage({ rows, firstId, after }: RowsBehindCursor): string {
  const many = after === null ? `${rows}` : `${rows} or more`
  return `${many} ${rows === 1 && after === null ? 'row' : 'rows'} waited behind the cursor, where the table had been read (the first is ${firstId}). They were loaded with ids or numbers of their own, or came by a partition, an inheriting table or a policy`
}

/** The next comparison comes after this time, not after an hour, so that the problem ends soon. */
const compareAgainMinutes = 5

/** Makes all instances read the table from its beginning, which captures only the rows that the ledger lacks. */
export async function requestTableReread(db: Database, found: RowsBehindCursor): Promise<void> {
  await raiseProblems(db, [
    { kind: 'rows_passed_over', subject: '', detail: rowsBehindCursorMessage(found), retryInMs: null },
  ])
  await db.query(
    `update outboxd.outbox set readings = readings + 1,
       compared_at = clock_timestamp() - interval '1 hour' + $1 * interval '1 minute' where is_current`,
    [compareAgainMinutes],
  )
}

export const clearRowsBehindCursorProblem = (db: Database): Promise<void> => clearProblems(db, 'rows_passed_over', null)
