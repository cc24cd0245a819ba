import { setTimeout as after } from 'node:timers/promises'

/**
 * Repeats `look` until its result is wanted, and returns that result.
 *
 * @throws Error with the last result, after `mostMs`
 */
export async function until<T>(look: () => Promise<T> | T, wanted: (seen: T) => boolean, mostMs = 60_000): Promise<T> {
  const startMs = performance.now()
  for (;;) {
    const seen = await look()
    if (wanted(seen)) return seen
    const waitedMs = performance.now() - startMs
    if (waitedMs > mostMs)
      throw new Error(`waited ${mostMs} ms in vain; last seen: ${JSON.stringify(seen, null, 1)?.slice(0, 3000)}`)
    // Waits longer each time, because each look takes CPU from what it waits for.
    await after(Math.min(250, 10 + waitedMs / 8))
  }
}
