import { findRepeated } from '../ledger/sameRow.ts'
import type { Database } from '../postgres/database.ts'
import type { CursorStore, Position, SeenRow } from './cursorStore.ts'
import { readSlice, type SliceStatements, sliceStatements } from './slices.ts'
import type { RowExpressions } from './statements.ts'

/** A slice of rows behind a position, where nobody looks again. */
export interface PassedSlice {
  /** Ids of rows that wait there and that the ledger does not know, in order. */
  unknown: string[]
  /** The id that ends the slice; null for the last. */
  upTo: string | null
}

/** How to find rows that wait behind a position. */
export interface PassedStatements extends SliceStatements {
  /** The position comes first, then the bounds of the slice. Asks nothing of a row but whether it waits. */
  rows(after: boolean, upTo: boolean): string
}

export function passedStatements(from: string, rows: RowExpressions): PassedStatements {
  const { sort, waits, idText } = rows
  const slices = sliceStatements(from, rows)
  const order = sort.map(({ expression }) => expression).join(', ')
  const position = sort.map(({ type }, i) => `$${i + 1}::${type}`).join(', ')
  const behind = `(${order}) <= (${position})`
  return {
    ...slices,
    rows: (after, upTo) =>
      `select ${idText} as "outboxId", '' as stamp, null as "createdAt" from ${from}
       where ${waits} and ${behind}${slices.within(after, upTo, sort.length + 1)} order by ${sort.at(-1)?.expression}`,
  }
}

/**
 * Reads a slice behind a position. All rows there were in the ledger before the position passed them; so one that is not came
 * later, by a way that the order does not foresee: it was loaded with a number of its own, a partition was attached, a policy lifted.
 * Two rows of one id are none of these: they are a conflict, and passed.
 */
export async function readPassed(
  { db, memory, statements }: { db: Database; memory: CursorStore; statements: PassedStatements },
  position: Position,
  { after, sliceRows }: { after: string | null; sliceRows: number },
): Promise<PassedSlice> {
  const { upTo, bounds } = await readSlice(db, statements, after, sliceRows)
  const { rows } = await db.query<SeenRow>(statements.rows(after !== null, upTo !== null), [...position, ...bounds])
  const { known } = await memory.findKnown(rows)
  const repeated = findRepeated(rows.map(({ outboxId }) => outboxId))
  const unknown = rows.flatMap(({ outboxId }) => (known.has(outboxId) || repeated.has(outboxId) ? [] : [outboxId]))
  return { unknown, upTo }
}
