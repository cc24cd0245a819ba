/** Other instances' work and an operator's commands are noticed at the latest after this. */
export const lookAgainMs = 1_000

interface Sight {
  submissionsReady: number
  pollsDue: number
  nextDueMs: number | null
  nextSlotMs: number | null
}

/**
 * After how many milliseconds to look again, where nothing can be sent now: when there is a slot for what waits, or
 * something to send. Pure.
 *
 * @param againInMs when the division of the slots may be another
 */
export function untilMore(
  { submissionsReady, pollsDue, nextDueMs, nextSlotMs }: Sight,
  againInMs: number | undefined,
): number {
  const more = submissionsReady + pollsDue > 0 ? nextSlotMs : nextDueMs
  return Math.max(1, Math.min(lookAgainMs, more ?? lookAgainMs, againInMs ?? lookAgainMs))
}

/** After how many milliseconds to look again while pauses stand; null: one without an end. Pure. */
export function untilPauseEnds(pauses: readonly { leftMs: number | null }[]): number {
  const longest = Math.max(...pauses.map(({ leftMs }) => leftMs ?? lookAgainMs))
  return Math.max(1, Math.min(lookAgainMs, longest))
}
