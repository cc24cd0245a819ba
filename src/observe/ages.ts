import type { Clock } from '../clock.ts'
import { type Instruments, loops } from './instruments.ts'
import type { LoopName } from './metrics.ts'

/** Times of one clock, epoch ms; null for none. */
interface Oldest {
  nowMs: number
  oldestUnsentMs: number | null
  oldestAcceptedMs: number | null
  oldestForPersonMs: number | null
  oldestReportDueMs: number | null
}

/**
 * Ages as they are when somebody scrapes: what a snapshot's own clock said, and what a stopwatch has counted since. A clock
 * that is off, ours or that of Prometheus, makes none of them older; one that jumps forward, until the next snapshot.
 */
export interface Ages {
  snapshotTaken(oldest: Oldest): void
  loopSucceeded(loop: LoopName): void
  /** Sets the gauges. */
  show(): void
}

export function createAges(clock: Pick<Clock, 'stopwatch'>, to: Instruments): Ages {
  let snapshot: { oldest: Oldest; sinceMs: () => number } | null = null
  const started = clock.stopwatch()
  const sinceSuccessMs = new Map<LoopName, () => number>(loops.map((loop) => [loop, started]))

  function showOldest(): void {
    if (snapshot === null) return
    const { oldest, sinceMs } = snapshot
    const nowMs = oldest.nowMs + sinceMs()
    const age = (fromMs: number | null) => (fromMs === null ? 0 : Math.max(0, nowMs - fromMs) / 1000)
    to.oldestUnsentAge.set(age(oldest.oldestUnsentMs))
    to.oldestAcceptedAge.set(age(oldest.oldestAcceptedMs))
    to.oldestForPersonAge.set(age(oldest.oldestForPersonMs))
    to.oldestReportDueAge.set(age(oldest.oldestReportDueMs))
  }

  return {
    snapshotTaken(oldest) {
      snapshot = { oldest, sinceMs: clock.stopwatch() }
    },
    loopSucceeded: (loop) => void sinceSuccessMs.set(loop, clock.stopwatch()),
    show() {
      showOldest()
      for (const [loop, sinceMs] of sinceSuccessMs) to.loopAge.set({ loop }, sinceMs() / 1000)
    },
  }
}
