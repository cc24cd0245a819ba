/** How many rows are tried at once. */
export interface Pace {
  readonly limit: number
  /** A batch has failed, and the row that it failed for is looked for in ever smaller ones. */
  readonly isNarrowing: boolean
}

const batchMax = 500

export const fullPace: Pace = { limit: batchMax, isNarrowing: false }

/** What came of a batch of so many rows. */
export type BatchEnd =
  | { kind: 'captured'; rows: number; isWhole: boolean }
  | { kind: 'failed'; rows: number }
  /** The row that it failed for was alone, and has been dealt with. */
  | { kind: 'found' }

/**
 * How many rows to try next. Batches take the lowest rows first, so that after one that failed the next half of it either
 * fails too, or leaves the culprit at the head of what comes then: in nine steps it is alone. Then it goes on by twos, fours and
 * so on, since such rows seldom come alone. Pure.
 */
export function nextPace(pace: Pace, end: BatchEnd): Pace {
  switch (end.kind) {
    case 'failed':
      return { limit: half(Math.min(pace.limit, end.rows)), isNarrowing: true }
    case 'found':
      return { limit: 2, isNarrowing: false }
    case 'captured':
      if (!end.isWhole) return { limit: Math.min(batchMax, 2 * end.rows), isNarrowing: false }
      if (pace.isNarrowing && pace.limit > 1) return { limit: half(pace.limit), isNarrowing: true }
      return { limit: Math.min(batchMax, 2 * pace.limit), isNarrowing: false }
    default:
      return end satisfies never
  }
}

const half = (rows: number) => Math.max(1, Math.ceil(rows / 2))
