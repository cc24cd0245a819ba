import { type Finding, notAsked } from './finding.ts'

/** A clock, by how much it is ahead of this host's at least and at most: nobody reads two at the same moment. */
export interface ClockReading {
  /** As in "the clock of … is". */
  whose: string
  leastMs: number
  mostMs: number
}

/** Said, since times in the ledger and in logs will not fit together. */
export const clockWarningMs = 2_000
/** What the daemon calls a problem, too (clock_off). */
export const clockProblemMs = 5_000

const here: ClockReading = { whose: 'this host', leastMs: 0, mostMs: 0 }

/** Compares each clock with each other. Pure. */
export function judgeClocks(readings: readonly ClockReading[]): Finding {
  const what = 'clocks'
  if (readings.length === 0) return notAsked(what, 'neither a database nor the service could be asked for the time')
  const clocks = [here, ...readings]
  const pairs = clocks.flatMap((one, i) => clocks.slice(i + 1).map((other) => compare(one, other)))
  const off = pairs.filter(({ apartMs }) => apartMs > clockWarningMs)
  if (off.length === 0)
    return { what, mark: 'ok', message: `those of ${names(clocks)} agree to ${clockWarningMs / 1000} s` }
  const isProblem = off.some(({ apartMs }) => apartMs > clockProblemMs)
  const message = off.map(
    ({ one, other, apartMs }) => `that of ${one} is ${Math.round(apartMs / 100) / 10} s ahead of that of ${other}`,
  )
  const next = 'Let NTP set the one that is off (timedatectl, chronyc tracking)'
  return { what, mark: isProblem ? 'problem' : 'warning', message: [...message, next].join('\n') }
}

/** By how much the first is certainly ahead. */
function compare(a: ClockReading, b: ClockReading): { one: string; other: string; apartMs: number } {
  const leastMs = b.leastMs - a.mostMs
  const mostMs = b.mostMs - a.leastMs
  if (leastMs > 0) return { one: b.whose, other: a.whose, apartMs: leastMs }
  return { one: a.whose, other: b.whose, apartMs: Math.max(0, -mostMs) }
}

function names(clocks: readonly ClockReading[]): string {
  const whose = clocks.map((clock) => clock.whose)
  return `${whose.slice(0, -1).join(', ')} and ${whose.at(-1)}`
}

/**
 * The service's clock by the Date of an answer, which is whole seconds.
 *
 * @param nowMs when the answer was read
 */
export function serviceClock(
  { dateMs, tookMs }: { dateMs: number | null; tookMs: number },
  nowMs: number,
): ClockReading[] {
  if (dateMs === null) return []
  return [{ whose: 'the service', leastMs: dateMs - nowMs, mostMs: dateMs + 1_000 - (nowMs - tookMs) }]
}
