/**
 * What ends a loop's wait. It is made before the loop, and before the parts that wake the loop, so that each can be given
 * what it needs when it is made.
 */
export interface Wakeup {
  /** Ends the wait that is under way, or keeps the next from beginning. */
  wake(): void
  /** Forgets that it was woken: what comes from now on counts. */
  reset(): void
  /** Waits so long, unless woken since the last reset. */
  sleep(ms: number): Promise<void>
}

export function createWakeup(): Wakeup {
  let isWoken = false
  let interrupt = () => {}
  return {
    wake() {
      isWoken = true
      interrupt()
    },
    reset() {
      isWoken = false
    },
    sleep(ms) {
      if (isWoken) return Promise.resolve()
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, ms)
        interrupt = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
  }
}
