import type { Database } from '../../postgres/database.ts'
import {
  filterValues,
  type ListedSubmission,
  type ListOrder,
  listedColumns,
  matchingSql,
  type SubmissionFilter,
} from './selectSubmissions.ts'

/** Where a submission stands in a list: since when it is in its state, in microseconds, and its number. */
export interface ListPosition {
  sinceMicros: number
  /** A bigint, as pg gives it. */
  seq: string
}

/** Which part of a list: what comes after a position, or the end of what comes before it; null: its beginning. */
export interface PageWanted {
  order: ListOrder
  from: { way: 'after' | 'before'; position: ListPosition } | null
  limit: number
}

/** A part of a list, in the list's order. */
export interface SubmissionPage {
  submissions: ListedSubmission[]
  /** Of the first and the last of them; null where there is none. */
  ends: { first: ListPosition; last: ListPosition } | null
  /** Whether the list goes on in the way in which it was read. */
  goesOn: boolean
}

/**
 * Reads the matching submissions from a position on, however far into the list that is: by the values that it is ordered by,
 * which the indexes of `matchingSql` have, not by counting.
 */
export async function selectPage(
  db: Database,
  filter: SubmissionFilter,
  { order, from, limit }: PageWanted,
): Promise<SubmissionPage> {
  const isBack = from?.way === 'before'
  const read = isBack ? opposite[order] : order
  const values = [...filterValues(filter), limit + 1]
  const { rows } =
    from === null
      ? await db.query<Row>(fromStart[read], values)
      : await db.query<Row>(fromPosition[read], [...values, from.position.sinceMicros, from.position.seq])
  const shown = rows.slice(0, limit)
  const inOrder = isBack ? shown.toReversed() : shown
  const [first, last] = [inOrder[0], inOrder.at(-1)]
  return {
    submissions: inOrder.map(({ seq: _, ...submission }) => submission),
    ends: first && last ? { first: positionOf(first), last: positionOf(last) } : null,
    goesOn: rows.length > limit,
  }
}

type Row = ListedSubmission & { seq: string }

const opposite = { longest: 'newest', newest: 'longest' } as const

/** Milliseconds as a double are true to a fifth of a microsecond, for as long as there are dates of four digits. */
const positionOf = ({ sinceMs, seq }: Row): ListPosition => ({ sinceMicros: Math.round(sinceMs * 1_000), seq })

/** A row comparison, which an index answers as one range. */
const beyond = (sign: '<' | '>') => (time: string) =>
  `(${time}, s.seq) ${sign} (timestamptz 'epoch' + $12::bigint * interval '1 microsecond', $13::bigint)`

const fromStart = { longest: matchingSql(listedColumns, 'longest'), newest: matchingSql(listedColumns, 'newest') }
const fromPosition = {
  longest: matchingSql(listedColumns, 'longest', beyond('>')),
  newest: matchingSql(listedColumns, 'newest', beyond('<')),
}
