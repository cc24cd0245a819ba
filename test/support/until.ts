import { setTimeout as after } from 'node:timers/promises'

/**
 * Repeats `look` until its result is wanted, and returns that result.
 *
 * @param mostMs bound of the pauses between the looks. The looks do not count: on a busy machine, all takes longer
 * @throws Error with the last result, after `mostMs`
 */
export async function until<T>(look: () => Promise<T> | T, wanted: (seen: T) => boolean, mostMs = 60_000): Promise<T> {
  let waitedMs = 0
  for (;;) {
    const seen = await look()
    if (wanted(seen)) return seen
    if (waitedMs > mostMs)
      throw new Error(`waited ${mostMs} ms in vain; last seen: ${JSON.stringify(seen, null, 1)?.slice(0, 3000)}`)
    // Waits longer each time, because each look takes CPU from what it waits for.
    const pauseMs = Math.min(250, 10 + waitedMs / 8)
    await after(pauseMs)
    waitedMs += pauseMs
  }
}
