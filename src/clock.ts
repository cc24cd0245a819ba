/** The clock of code that reads, writes or waits. Pure functions take `nowMs` instead. */
export interface Clock {
  nowMs(): number
  /**
   * Returns a function for the elapsed milliseconds: the larger advance of the monotonic and the wall clock. Stops of
   * the process or the machine count, too.
   */
  stopwatch(): () => number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  stopwatch() {
    const monotonicMs = performance.now()
    const wallMs = Date.now()
    return () => Math.max(performance.now() - monotonicMs, Date.now() - wallMs)
  },
}
