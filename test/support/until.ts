import { setTimeout as after } from 'node:timers/promises'

/**
 * Looks again and again until `look` gives what is wanted, and gives that.
 *
 * @throws Error that shows what was seen last, after `mostMs`
 */
export async function until<T>(look: () => Promise<T> | T, wanted: (seen: T) => boolean, mostMs = 60_000): Promise<T> {
  const startMs = performance.now()
  for (;;) {
    const seen = await look()
    if (wanted(seen)) return seen
    const waitedMs = performance.now() - startMs
    if (waitedMs > mostMs)
      throw new Error(`waited ${mostMs} ms in vain; last seen: ${JSON.stringify(seen, null, 1)?.slice(0, 3000)}`)
    // Rarer the longer it takes: a look costs what is waited for its share of two cores.
    await after(Math.min(250, 10 + waitedMs / 8))
  }
}
