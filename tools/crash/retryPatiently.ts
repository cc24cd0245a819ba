import { setTimeout as after } from 'node:timers/promises'

/** A crashed database is back within a second, or within ten on a busy machine. */
const patienceMs = 60_000

/** Tries again while the database restarts. */
export async function retryPatiently<T>(work: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + patienceMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (performance.now() > untilMs) throw error
      await after(250)
    }
  }
}
