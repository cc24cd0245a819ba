/**
 * Now, in whole microseconds since 1970: the sandbox's one clock, for arrivals, tokens and processing alike.
 *
 * Monotonic while the process lives, because a rate limit counted on a clock that steps back would let too many through.
 */
export function nowUs(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000)
}

/** ISO 8601 in UTC with milliseconds, as the answers carry it. */
export function isoTime(us: number): string {
  return new Date(us / 1000).toISOString()
}
