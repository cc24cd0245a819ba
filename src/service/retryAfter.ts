/**
 * Retry-After in milliseconds from `nowMs`, whether it is seconds or an HTTP date; null where absent or unreadable.
 *
 * @see RFC 9110, 10.2.3
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number | null {
  const text = header?.trim() ?? ''
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, Number.MAX_SAFE_INTEGER)
  // Date.parse also takes `-5` and `1e3` for dates: only what begins with the name of a day is one here.
  const untilMs = /^[A-Z][a-z]{2,8}, ?\d/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(untilMs) ? null : Math.max(0, untilMs - nowMs)
}
