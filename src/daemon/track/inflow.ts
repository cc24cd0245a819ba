/** What has come in of late. */
export interface Inflow {
  /** @returns records that come in a window, averaged over the last few */
  perWindow(seen: {
    /** Requests that the limit allows in a window. */
    capacity: number
    /** Submissions of the last window. */
    submissionsSent: number
    /** Records that wait for their first request. */
    submissionsWaiting: number
    nowMs: number
  }): number
}

const memoryWindows = 5

/**
 * Averages once a window how many records have come: those that were sent, and those that now wait and did not then. A
 * window counts for no more than it can carry, so that a batch of thousands is not taken for an inflow of thousands.
 * Begins with nothing.
 */
export function createInflow(windowMs: number): Inflow {
  let average = 0
  let last: { atMs: number; waiting: number } | null = null
  return {
    perWindow({ capacity, submissionsSent, submissionsWaiting: waiting, nowMs }) {
      last ??= { atMs: nowMs, waiting }
      const windows = (nowMs - last.atMs) / windowMs
      if (windows < 1) return average
      const came = Math.min(capacity / 2, Math.max(0, submissionsSent + waiting - last.waiting))
      const kept = Math.exp(-windows / memoryWindows)
      average = average * kept + came * (1 - kept)
      last = { atMs: nowMs, waiting }
      return average
    },
  }
}
