export interface SummingDeps {
  /** On a clock that only goes forward. */
  elapsedMs(): number
  /**
   * Writes what became of records in the minutes, or hours, that are over; not too many at a time.
   *
   * @param outboxWaiting rows that wait in the outbox; null: nobody knows
   */
  writePeriods(span: 'minute' | 'hour', outboxWaiting: number | null): Promise<{ written: number; hasMore: boolean }>
  /** Adds up the requests of the hours that are over. */
  writeRequestHours(): Promise<void>
  /** Deletes what nobody asks for any more. */
  prunePeriods(): Promise<void>
}

/** Keeps the history that `outboxd console` shows. */
export interface Summing {
  /** So many rows wait in the outbox. */
  sawWaiting(rows: number): void
  /** One round. @returns whether there is more to write at once */
  runOnce(): Promise<boolean>
}

/** What was seen of the outbox longer ago says nothing of the minute that is over. */
const seenMaxMs = 60_000

export function createSumming(deps: SummingDeps): Summing {
  let seen: { rows: number; atMs: number } | null = null
  const waiting = () => (seen !== null && deps.elapsedMs() - seen.atMs < seenMaxMs ? seen.rows : null)
  return {
    sawWaiting(rows) {
      seen = { rows, atMs: deps.elapsedMs() }
    },
    async runOnce() {
      const minutes = await deps.writePeriods('minute', waiting())
      // An hour is made of its minutes, and whoever wrote the last of them writes the hour.
      if (minutes.written === 0 || minutes.hasMore) return minutes.hasMore
      const hours = await deps.writePeriods('hour', null)
      if (hours.written > 0) {
        await deps.writeRequestHours()
        await deps.prunePeriods()
      }
      return hours.hasMore
    },
  }
}
