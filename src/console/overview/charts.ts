import type { MinuteOfLastHour } from '../../ledger/lastHour.ts'
import { formatDuration, formatInstant } from '../../time.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'

/** Pictures without script, which a screen reader can read: each bar says its figures. */

const width = 360
const height = 84
const left = 34
const right = 6
const top = 6
const bottom = 66

export function chartsHtml(minutes: readonly MinuteOfLastHour[], limitAMinute: number | null): HtmlValue {
  const completed = minutes.reduce((sum, minute) => sum + minute.completed, 0)
  return html`<div class="charts">
${chart({
  title: 'Requests a minute',
  note:
    limitAMinute === null
      ? 'submissions, and above them polls'
      : `submissions, and above them polls; the limit is ${limitAMinute.toLocaleString('en')}`,
  minutes,
  parts: [
    { kind: 'submissions', tone: 'strong', of: ({ submissions }) => submissions },
    { kind: 'polls', tone: 'weak', of: ({ polls }) => polls },
  ],
  line: limitAMinute,
  words: String,
})}
${chart({
  title: 'Records ended a minute',
  note: `${completed.toLocaleString('en')} completed in the last hour`,
  minutes,
  parts: [
    { kind: 'completed', tone: 'good', of: (minute) => minute.completed },
    { kind: 'not completed', tone: 'bad', of: ({ notCompleted }) => notCompleted },
  ],
  line: null,
  words: String,
})}
${chart({
  title: 'From row to completed',
  note: 'half of them, and 95 %',
  minutes,
  parts: [
    { kind: 'half', tone: 'strong', of: ({ halfMs }) => halfMs ?? 0 },
    {
      kind: '95 %',
      tone: 'weak',
      of: ({ halfMs, mostMs }) => (mostMs ?? 0) - (halfMs ?? 0),
      figure: ({ mostMs }) => mostMs ?? 0,
    },
  ],
  line: null,
  words: formatDuration,
})}
</div>`
}

interface Part {
  kind: string
  tone: 'strong' | 'weak' | 'good' | 'bad'
  /** The height of this part of a bar. */
  of(minute: MinuteOfLastHour): number
  /** The figure that it stands for, if that is another. */
  figure?(minute: MinuteOfLastHour): number
}

interface Chart {
  title: string
  note: string
  minutes: readonly MinuteOfLastHour[]
  /** Stacked, the lowest first. */
  parts: readonly Part[]
  /** A value at which a line is drawn. */
  line: number | null
  words(value: number): string
}

function chart({ title, note, minutes, parts, line, words }: Chart): HtmlPart {
  const sums = minutes.map((minute) => parts.reduce((sum, part) => sum + part.of(minute), 0))
  const most = Math.max(1, line ?? 0, ...sums)
  const step = (width - left - right) / Math.max(1, minutes.length)
  const y = (value: number) => round(bottom - (value / most) * (bottom - top))
  const bars = minutes.map((minute, i) => {
    if (sums[i] === 0) return ''
    const said = parts.map(({ kind, of, figure = of }) => `${kind} ${words(figure(minute))}`).join(', ')
    return html`<g><title>${formatInstant(minute.atMs).slice(11, 16)}Z: ${said}</title>${stack(minute, i)}</g>`
  })
  function stack(minute: MinuteOfLastHour, i: number): HtmlValue {
    let below = 0
    return parts.map((part) => {
      const value = part.of(minute)
      if (value <= 0) return ''
      const from = y(below)
      below += value
      const to = y(below)
      return html`<rect class="${part.tone}" x="${round(left + i * step)}" y="${to}" width="${round(step - 1)}" height="${round(from - to)}"/>`
    })
  }
  const first = minutes[0]
  return html`<section class="chart"><h2>${title}</h2><p class="quiet">${note}</p>
<svg viewBox="0 0 ${width} ${height}" role="group" aria-label="${title}, each minute of the last hour">
<path class="axis" d="M${left} ${bottom}H${width - right}"/>
${line === null ? '' : html`<path class="line" d="M${left} ${y(line)}H${width - right}"/>`}
${bars}
<text x="${left - 4}" y="${top + 7}" class="end">${words(most)}</text><text x="${left - 4}" y="${bottom}" class="end">0</text>
<text x="${left}" y="${height - 5}">${first === undefined ? '' : `${formatInstant(first.atMs).slice(11, 16)}Z`}</text><text x="${width - right}" y="${height - 5}" class="end">now</text>
</svg></section>\n`
}

const round = (value: number) => Math.round(value * 10) / 10
