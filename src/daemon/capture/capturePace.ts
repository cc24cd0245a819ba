import type { WaitingKey } from '../../model.ts'

/** The number of rows that are tried at once, and why. */
export interface Pace {
  readonly limit: number
  /** True while ever smaller batches isolate a failing row. */
  readonly isNarrowing: boolean
  /** True after a batch was too slow for one statement. Batches then grow slowly. */
  readonly isSlow: boolean
}

const batchMax = 500

export const fullPace: Pace = { limit: batchMax, isNarrowing: false, isSlow: false }

export type BatchOutcome =
  | { kind: 'captured'; rows: number; isWhole: boolean }
  | { kind: 'failed'; rows: number }
  | { kind: 'slow'; rows: number }
  /** The failing row was alone, and was rejected or skipped. */
  | { kind: 'found' }

/**
 * Decides how many rows to try next. Batches take the lowest rows first, so halving isolates a failing row in nine
 * steps. Then batches double again, because such rows seldom come alone. A slow batch says nothing about its rows, only
 * about their number.
 */
export function nextPace(pace: Pace, end: BatchOutcome): Pace {
  switch (end.kind) {
    case 'slow':
      return { limit: half(Math.min(pace.limit, end.rows)), isNarrowing: false, isSlow: true }
    case 'failed':
      return { ...pace, limit: half(Math.min(pace.limit, end.rows)), isNarrowing: true }
    case 'found':
      return { ...pace, limit: 2, isNarrowing: false }
    case 'captured':
      if (pace.isNarrowing && pace.limit > 1 && end.isWhole) return { ...pace, limit: half(pace.limit) }
      // A batch that was not full says nothing about larger ones.
      if (pace.isSlow && end.rows < pace.limit) return pace
      return grown(end.isWhole ? pace.limit : end.rows, pace.isSlow)
    default:
      return end satisfies never
  }
}

const half = (rows: number) => Math.max(1, Math.ceil(rows / 2))

function grown(limit: number, isSlow: boolean): Pace {
  const next = Math.min(batchMax, isSlow ? limit + Math.ceil(limit / 8) : 2 * limit)
  return { limit: next, isNarrowing: false, isSlow: isSlow && next < batchMax }
}

/**
 * Decides how many rows there is room for. Leaves out records behind a held one, because they may stay for days. A key
 * whose records fill a small part of the window gets no more.
 */
export function captureClaimLimits(
  { queued, waitingKeys }: { queued: number; waitingKeys: readonly WaitingKey[] },
  windowMax: number,
): { limit: number; keyRowsMax: number; exceptKeys: string[] } {
  const stuck = waitingKeys.reduce((sum, line) => sum + (line.isHeld ? line.length : 0), 0)
  const keyRowsMax = Math.max(1, Math.floor(windowMax / lineShare))
  const closed = waitingKeys.filter(({ length, isHeld }) => isHeld || length >= keyRowsMax)
  return { limit: windowMax - (queued - stuck), keyRowsMax, exceptKeys: closed.map(({ key }) => key) }
}

const lineShare = 40
