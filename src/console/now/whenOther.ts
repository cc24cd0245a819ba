import type { Clock } from '../../clock.ts'

/**
 * Makes a reading of what is counted elsewhere: it is made again when the count is another, where the last is `leastMs` old, and
 * when it is `mostMs` old. Not to be asked again before it has answered.
 */
export function whenOther<T>(
  { stopwatch }: Pick<Clock, 'stopwatch'>,
  { leastMs, mostMs }: { leastMs: number; mostMs: number },
  read: () => Promise<T>,
): (count: string) => Promise<T> {
  let last: { count: string; value: T; ageMs: () => number } | null = null
  return async (count) => {
    if (last !== null && last.ageMs() < (count === last.count ? mostMs : leastMs)) return last.value
    last = { count, value: await read(), ageMs: stopwatch() }
    return last.value
  }
}
