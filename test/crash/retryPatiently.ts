import { setTimeout as after } from 'node:timers/promises'

/** Tries again while the database restarts. */
export async function retryPatiently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === 20) throw error
      await after(250)
    }
  }
}
