/** Time as a value that parts are given. Pure functions take `nowMs` instead. */
export interface Clock {
  /** Wall clock in epoch milliseconds: for what people read and what other machines compare with. */
  nowMs(): number
  /**
   * Milliseconds that have gone by, for leases: never runs backward, and takes the larger of the monotonic and the
   * wall clock's advance, so that a process that was stopped, or a machine that was suspended, notices.
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
