/** The clock of code that reads, writes or waits. Pure functions take `nowMs` instead. */
export interface Clock {
  nowMs(): number
  /**
   * Returns a function for the elapsed milliseconds, which never runs backwards. Counts stops of the process and, by
   * the wall clock, of the machine.
   */
  stopwatch(): () => number
}

/** Smaller differences of the two clocks come from rounding, or from a stop between two reads. */
const leapMinMs = 100

/**
 * Stopwatches add each leap of the wall clock, because the monotonic clock may stand still while the machine is
 * suspended. Setting the wall clock back changes nothing.
 */
export function createClock(readMonotonicMs: () => number, readWallMs: () => number): Clock {
  return {
    nowMs: readWallMs,
    stopwatch() {
      const startMs = readMonotonicMs()
      let aheadMs = readWallMs() - startMs
      let leaptMs = 0
      return () => {
        const monotonicMs = readMonotonicMs()
        const leapMs = readWallMs() - monotonicMs - aheadMs
        if (leapMs >= leapMinMs) leaptMs += leapMs
        if (leapMs < 0 || leapMs >= leapMinMs) aheadMs += leapMs
        return monotonicMs - startMs + leaptMs
      }
    },
  }
}

export const systemClock: Clock = createClock(
  () => performance.now(),
  () => Date.now(),
)
