import { type HtmlSafeString, html } from '@prairielearn/html'
import type { Period, Span } from '../../ledger/periods.ts'
import { showDuration } from '../../time.ts'
import { emptyNote, momentHtml } from '../html/elements.ts'

export function historySection({ range, atMs, plots }: History): HtmlSafeString {
  const first = atMs[0]
  const last = atMs.at(-1)
  const links = historyRanges.map((each) =>
    each === range
      ? html`<li><a href="/?range=${each}" aria-current="true">${each}</a></li>\n`
      : html`<li><a href="/?range=${each}">${each}</a></li>\n`,
  )
  const shownPlots =
    first === undefined || last === undefined
      ? emptyNote('There is no minute yet. A daemon writes each minute when it ends.')
      : html`<div class="plots">${plots.map((plot) => figure(plot, atMs))}</div>
<p class="quiet">From ${momentHtml(first)} to ${momentHtml(last + lengthMs(range))}, by the ${rangeSpans[range].span}.</p>`
  return html`<h2>The last <span>${range}</span></h2>
<nav aria-label="How far back"><ul class="ranges">${links}</ul></nav>
${shownPlots}`
}

const lengthMs = (range: History['range']) => (rangeSpans[range].span === 'hour' ? 3_600_000 : 60_000)

function figure(plot: Plot, atMs: readonly number[]): HtmlSafeString {
  return html`<figure class="plot" id="plot-${plot.id}">
<figcaption><h3>${plot.title}</h3><p class="quiet">${plot.said}</p></figcaption>
${drawing(plot, atMs)}
<ul class="legend">${plot.series.map(
    ({ name, look }) =>
      html`<li><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><path class="line ${look}" d="M0 5h10"/></svg> ${name}</li>\n`,
  )}</ul>
</figure>\n`
}

const width = 600
const height = 120

function drawing({ title, said, unit, series }: Plot, atMs: readonly number[]): HtmlSafeString {
  const highest = highestOf(series.flatMap(({ values }) => values)) ?? 0
  return html`<p class="scale"><span>${plotValue(highest, unit)}</span></p>
<svg class="drawing" viewBox="0 0 ${width} ${height + 1}" role="img" aria-label="${title}: ${said}">
<path class="axis" d="M0 0.5h${width}M0 ${height + 0.5}h${width}"/>
${series.map((line) => html`<path class="line ${line.look}" d="${plotPath(downsample(line.values), downsample(atMs), highest)}"/>\n`)}
</svg>
<p class="scale"><span>0</span></p>`
}

/** Makes an SVG path with a gap for each unknown value. A value between two gaps becomes a dot. */
export function plotPath(
  values: readonly (number | null)[],
  atMs: readonly (number | null)[],
  highest: number,
): string {
  const first = atMs[0] ?? 0
  const last = atMs.at(-1) ?? 0
  const x = (ms: number) => round(((ms - first) / Math.max(1, last - first)) * width)
  const y = (value: number) => round(height - (value / Math.max(highest, Number.EPSILON)) * (height - 4))
  return values
    .map((value, i) => {
      if (value === null) return ''
      const at = `${x(atMs[i] ?? first)} ${y(value)}`
      const isAlone = (values[i - 1] ?? null) === null
      return isAlone ? `M${at}h0.1` : `L${at}`
    })
    .join('')
}

const pointsMax = 300

export function downsample(values: readonly (number | null)[]): (number | null)[] {
  const size = Math.ceil(values.length / pointsMax)
  return Array.from({ length: Math.ceil(values.length / size) || 0 }, (_, i) =>
    highestOf(values.slice(i * size, (i + 1) * size)),
  )
}

const round = (length: number) => Math.round(length * 10) / 10

export const historyRanges = ['hour', 'day', 'week'] as const
export type Range = (typeof historyRanges)[number]

/** Minutes are kept for two days, hours for 29. */
export const rangeSpans: Record<Range, { span: Span; withinMs: number }> = {
  hour: { span: 'minute', withinMs: 3_600_000 },
  day: { span: 'minute', withinMs: 86_400_000 },
  week: { span: 'hour', withinMs: 7 * 86_400_000 },
}

interface Series {
  name: string
  look: 'first' | 'second'
  values: (number | null)[]
}

interface Plot {
  id: 'ended' | 'wait' | 'waiting'
  title: string
  said: string
  unit: 'count' | 'ms'
  series: Series[]
}

export interface History {
  range: Range
  atMs: number[]
  plots: Plot[]
}

export function toPlottedHistory(range: Range, periods: readonly Period[]): History {
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
        ...{ id: 'ended', title: 'Records ended per minute', unit: 'count' },
        said: `${through.toLocaleString('en')} in the last ${range}, ${plotValue(highestOf(good), 'count')} completed a minute at most`,
        series: [
          { name: 'completed', look: 'first', values: good },
          { name: 'failed, rejected, uncertain', look: 'second', values: bad },
        ],
      },
      {
        ...{ id: 'wait', title: 'Time from the row’s creation to its end', unit: 'ms' },
        said: `half within ${plotValue(highestOf(p50), 'ms')} at worst, 95 % within ${plotValue(highestOf(p95), 'ms')} at worst`,
        series: [
          { name: 'p50', look: 'first', values: p50 },
          { name: 'p95', look: 'second', values: p95 },
        ],
      },
      {
        ...{ id: 'waiting', title: 'Rows waiting to be sent', unit: 'count' },
        said: `${last === null ? 'unknown now' : `${plotValue(last, 'count')} now`}, ${plotValue(highestOf(waiting), 'count')} at most`,
        series: [{ name: 'waiting', look: 'first', values: waiting }],
      },
    ],
  }
}

function highestOf(values: readonly (number | null)[]): number | null {
  return values.reduce((highest, value) => (value === null ? highest : Math.max(highest ?? 0, value)), null)
}

function plotValue(value: number | null, unit: Plot['unit']): string {
  if (value === null) return 'unknown'
  return unit === 'ms' ? showDuration(value) : value.toLocaleString('en', { maximumFractionDigits: 1 })
}
