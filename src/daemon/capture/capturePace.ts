import type { WaitingKey } from '../../model.ts'

/** How many rows are tried at once. */
export interface Pace {
  readonly limit: number
  /** A batch has failed, and the row that it failed for is looked for in ever smaller ones. */
  readonly isNarrowing: boolean
  /** A batch took longer than one statement may, to read or to mark: batches grow slowly from here. */
  readonly isSlow: boolean
}

const batchMax = 500

export const fullPace: Pace = { limit: batchMax, isNarrowing: false, isSlow: false }

/** What came of a batch of so many rows. */
export type BatchOutcome =
  | { kind: 'captured'; rows: number; isWhole: boolean }
  | { kind: 'failed'; rows: number }
  /** To read their contents, or to mark them, took too long. */
  | { kind: 'slow'; rows: number }
  /** The row that it failed for was alone, and has been dealt with. */
  | { kind: 'found' }

/**
 * How many rows to try next. Batches take the lowest rows first, so that after one that failed the next half of it either
 * fails too, or leaves the culprit at the head of what comes then: in nine steps it is alone. Then it goes on by twos, fours and
 * so on, since such rows seldom come alone. One that took too long says nothing of its rows, but of how many may be marked at once. Pure.
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
      // A batch that was not full proves nothing of a larger one.
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
 * What there is room for. Records that wait behind one that is held for a person take no place: they may stay for days, and
 * those that could be sent would find the window full. Of one key no more is taken while a small part of the window holds
 * records of it. Pure.
 *
 * @param windowMax at most so many records are queued
 */
export function limitsFor(
  { queued, waitingKeys }: { queued: number; waitingKeys: readonly WaitingKey[] },
  windowMax: number,
): { limit: number; keyRowsMax: number; exceptKeys: string[] } {
  const stuck = waitingKeys.reduce((sum, line) => sum + (line.isHeld ? line.length : 0), 0)
  const keyRowsMax = Math.max(1, Math.floor(windowMax / lineShare))
  const closed = waitingKeys.filter(({ length, isHeld }) => isHeld || length >= keyRowsMax)
  return { limit: windowMax - (queued - stuck), keyRowsMax, exceptKeys: closed.map(({ key }) => key) }
}

const lineShare = 40
