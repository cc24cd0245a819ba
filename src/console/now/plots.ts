import { showDuration } from '../../cli/time.ts'
import type { Period, Span } from '../../ledger/periods.ts'

/** How far the plots look back. */
export const ranges = ['hour', 'day', 'week'] as const
export type Range = (typeof ranges)[number]

/** What a range is made of: minutes are kept for two days, hours for 29. */
export const rangeSpans: Record<Range, { span: Span; withinMs: number }> = {
  hour: { span: 'minute', withinMs: 3_600_000 },
  day: { span: 'minute', withinMs: 86_400_000 },
  week: { span: 'hour', withinMs: 7 * 86_400_000 },
}

/** A line of a plot; null where nothing is known. */
export interface Series {
  name: string
  /** How it looks (assets/console.css). */
  look: 'first' | 'second'
  values: (number | null)[]
}

export interface Plot {
  id: 'ended' | 'wait' | 'waiting'
  title: string
  /** What is to be seen, for those who do not see it. */
  said: string
  unit: 'count' | 'ms'
  series: Series[]
}

/** What became of records over a range, as plots of one time axis. */
export interface History {
  range: Range
  /** When each period began, epoch milliseconds. */
  atMs: number[]
  plots: Plot[]
}

/** Makes the plots. Pure. */
export function historyOf(range: Range, periods: readonly Period[]): History {
  const minutes = rangeSpans[range].span === 'hour' ? 60 : 1
  const perMinute = (count: number) => Math.round((count / minutes) * 100) / 100
  const good = periods.map(({ completed }) => perMinute(completed))
  const bad = periods.map(({ failed, rejected, uncertain }) => perMinute(failed + rejected + uncertain))
  const p50 = periods.map(({ waitP50Ms }) => waitP50Ms)
  const p95 = periods.map(({ waitP95Ms }) => waitP95Ms)
  const waiting = periods.map((period) => period.waiting)
  const through = periods.reduce(
    (sum, { completed, failed, rejected, uncertain }) => sum + completed + failed + rejected + uncertain,
    0,
  )
  const last = waiting.at(-1) ?? null
  return {
    range,
    atMs: periods.map(({ beganMs }) => beganMs),
    plots: [
      {
        ...{ id: 'ended', title: 'Records through a minute', unit: 'count' },
        said: `${through.toLocaleString('en')} in the last ${range}, ${shown(most(good), 'count')} completed a minute at most`,
        series: [
          { name: 'completed', look: 'first', values: good },
          { name: 'failed, rejected, uncertain', look: 'second', values: bad },
        ],
      },
      {
        ...{ id: 'wait', title: 'From the row’s creation until its end is known', unit: 'ms' },
        said: `half within ${shown(most(p50), 'ms')} at worst, 95 % within ${shown(most(p95), 'ms')} at worst`,
        series: [
          { name: 'p50', look: 'first', values: p50 },
          { name: 'p95', look: 'second', values: p95 },
        ],
      },
      {
        ...{ id: 'waiting', title: 'Rows that wait to be sent', unit: 'count' },
        said: `${last === null ? 'not known now' : `${shown(last, 'count')} now`}, ${shown(most(waiting), 'count')} at most`,
        series: [{ name: 'waiting', look: 'first', values: waiting }],
      },
    ],
  }
}

/** The highest of them; null where nothing is known. */
export function most(values: readonly (number | null)[]): number | null {
  return values.reduce((highest, value) => (value === null ? highest : Math.max(highest ?? 0, value)), null)
}

/** A value as it is read. */
export function shown(value: number | null, unit: Plot['unit']): string {
  if (value === null) return 'nothing known'
  return unit === 'ms' ? showDuration(value) : value.toLocaleString('en', { maximumFractionDigits: 1 })
}
