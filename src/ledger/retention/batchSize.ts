/** What a batch aims at: well below the time for which it may hold a lock, as the next one may be slower. */
const aimMs = 30

/** For longer nobody holds a lock: the server ends the statement, and the batch is tried again smaller. */
export const statementMaxMs = 80

const rowsMax = 2_000

/** A disk that nobody has warmed takes its time. */
export const firstBatchRows = 50

/**
 * How many rows the next batch takes, after one of so many that took so long; null: it was given up. Grows to twice as many at
 * most, since an empty batch says nothing of a full one. Pure.
 */
export function nextBatchRows(rows: number, tookMs: number | null): number {
  if (tookMs === null) return Math.max(1, Math.floor(rows / 4))
  const aimed = Math.floor((rows * aimMs) / Math.max(1, tookMs))
  return Math.min(rowsMax, rows * 2, Math.max(1, aimed))
}
