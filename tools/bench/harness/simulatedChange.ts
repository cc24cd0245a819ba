import { type Schedule, simulate } from '../simulation.ts'
import { arrivals } from './workloads.ts'

/** A change of the service's processing times on a day with few records. */
export interface Change {
  readonly name: string
  /** Returns how long a transaction takes that is accepted this many minutes after the change; negative before it. */
  readonly processingMs: (random: () => number, minute: number) => number
  /** The minutes in which the service is down and no record arrives. */
  readonly quiet?: readonly [from: number, until: number]
  /** The minutes of the changes. */
  readonly at: readonly number[]
  /** True if the last change makes the service faster. */
  readonly faster?: true
}

const around = (seconds: number, random: () => number) => 1000 * seconds * (0.9 + 0.2 * random())
const night = 480

export const changes: readonly Change[] = [
  { name: '5 s to 60 s', at: [0], processingMs: (random, minute) => around(minute < 0 ? 5 : 60, random) },
  { name: '60 s to 5 s', at: [0], faster: true, processingMs: (random, minute) => around(minute < 0 ? 60 : 5, random) },
  {
    name: 'a night with 500 s, before and after 20 s',
    at: [0, night],
    faster: true,
    processingMs: (random, minute) => around(minute < 0 || minute >= night ? 20 : 500, random),
  },
  {
    name: 'an hour of E003 between 5 s and 60 s',
    at: [60],
    quiet: [0, 60],
    processingMs: (random, minute) => around(minute < 0 ? 5 : 60, random),
  },
]

export interface ChangeFigures {
  /** For each change, after how many records the wait was right again; null if not before the next change. */
  readonly records: readonly (number | null)[]
  /** Mean delay and polls of these records. */
  readonly delayMs: readonly number[]
}

const windowMs = 60_000
const beforeMinutes = 90
const afterMinutes = 180
const perMinute = 6
/** The wait is right if this many records in a row have a mean delay as in the long run, or little above. */
const inARow = 10
const toleranceShare = 0.2
const toleranceMs = 1_000

/** Simulates a change at six records a minute, and counts the records until the schedule's wait is right again. */
export function playChange(change: Change, schedule: Schedule, seed: number): ChangeFigures {
  const changeMs = beforeMinutes * windowMs
  const lastMinute = (change.at.at(-1) ?? 0) + afterMinutes
  const durationMs = changeMs + lastMinute * windowMs
  const minuteOf = (atMs: number) => (atMs - changeMs) / windowMs
  const [quietFrom, quietUntil] = change.quiet ?? [0, 0]
  const { finished } = simulate({
    limit: 100,
    windowMs,
    answerMs: 30,
    maxInFlight: 8,
    durationMs,
    countFromMs: 0,
    processingMs: (random, nowMs) => change.processingMs(random, minuteOf(nowMs)),
    arrivalsAtMs: arrivals(perMinute, windowMs, durationMs - 30 * windowMs, seed).filter((atMs) => {
      const minute = minuteOf(atMs)
      return minute < quietFrom || minute >= quietUntil
    }),
    schedule,
    seed,
  })
  const inOrder = finished.toSorted((a, b) => a.committedAtMs - b.committedAtMs)
  const phases = change.at.map((from, i) => {
    const until = change.at[i + 1] ?? lastMinute
    return inOrder
      .filter(({ committedAtMs }) => minuteOf(committedAtMs) >= from && minuteOf(committedAtMs) < until)
      .map(({ delayMs }) => delayMs)
  })
  const records = phases.map(recordsUntilRight)
  return {
    records,
    delayMs: phases.map((delays, i) => mean(delays.slice(0, Math.max(1, records[i] ?? delays.length)))),
  }
}

function recordsUntilRight(delaysMs: readonly number[]): number | null {
  const usualMs = mean(delaysMs.slice(-Math.floor(delaysMs.length / 2)))
  const mostMs = usualMs + Math.max(usualMs * toleranceShare, toleranceMs)
  const first = delaysMs.findIndex((_, i) => mean(delaysMs.slice(i, i + inARow)) <= mostMs)
  return first === -1 ? null : first
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
