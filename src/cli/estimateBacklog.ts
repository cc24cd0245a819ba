/** How long the records that wait will take, if nothing changes. */
export interface Backlog {
  records: number
  durationMs: number
  /** Polls that a record is reckoned with. */
  pollsPerRecord: number
}

/** As long as nothing has completed: one poll a record, which is what late polling comes to. */
const pollsAssumed = 1

/**
 * Reckons every record that waits at one request and the polls that the last ones took, and every one that is being
 * tracked at those polls alone, all at the rate limit; but none is through before it is due. Pure.
 */
export function estimateBacklog(now: {
  toSend: number
  tracked: number
  pollsPerRecord: number | null
  capacity: number
  windowMs: number
  /** The last record that may go is due in so long. */
  lastDueInMs: number
}): Backlog {
  const pollsPerRecord = now.pollsPerRecord ?? pollsAssumed
  const requests = now.toSend * (1 + pollsPerRecord) + now.tracked * pollsPerRecord
  const durationMs = Math.max((requests / now.capacity) * now.windowMs, now.lastDueInMs)
  return { records: now.toSend + now.tracked, pollsPerRecord, durationMs }
}

/**
 * When the backlog is through: from now on, or from when the last pause ends. Pure.
 *
 * @returns epoch milliseconds; null where nothing waits, or a pause has no end
 */
export function throughAtMs(
  backlog: Backlog,
  pauses: readonly { untilMs: number | null }[],
  nowMs: number,
): number | null {
  if (backlog.records === 0) return null
  const ends = pauses.map(({ untilMs }) => untilMs)
  return ends.includes(null) ? null : Math.max(nowMs, ...ends.filter((ms) => ms !== null)) + backlog.durationMs
}
