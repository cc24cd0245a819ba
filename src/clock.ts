/** Time for parts that act. Pure functions take `nowMs` instead. */
export interface Clock {
  /** Epoch milliseconds, for people and other machines. */
  nowMs(): number
  /**
   * Returns a function for the elapsed milliseconds. Takes the larger advance of the monotonic and the wall clock, so
   * that a process notices a stop or a suspended machine.
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
