import type { MinuteOfLastHour } from '../../ledger/lastHour.ts'
import { formatDuration, formatInstant } from '../../time.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'

/**
 * Pictures without script, which a screen reader can read: each bar says its figures. The style sheet has what all bars
 * share, their width, too, because a page has hundreds.
 */

const width = 360
const height = 84
const left = 34
const right = 6
const top = 6
const bottom = 66
const minuteWidth = (width - left - right) / 60

export function chartsHtml(minutes: readonly MinuteOfLastHour[], limitAMinute: number | null): HtmlValue {
  const completed = minutes.reduce((sum, minute) => sum + minute.completed, 0)
  const limit = limitAMinute === null ? '' : `; the limit is ${limitAMinute.toLocaleString('en')}`
  return html`<div class="charts">
${chart(minutes, {
  title: 'Requests a minute',
  note: `submissions, and above them polls${limit}`,
  line: limitAMinute,
  barsOf: ({ submissions, polls }) => [
    { kind: 'submissions', upTo: submissions, figure: submissions },
    { kind: 'polls', tone: 'weak', upTo: submissions + polls, figure: polls },
  ],
})}
${chart(minutes, {
  title: 'Records ended a minute',
  note: `${completed.toLocaleString('en')} completed in the last hour`,
  barsOf: (minute) => [
    { kind: 'completed', tone: 'good', upTo: minute.completed, figure: minute.completed },
    { kind: 'not completed', tone: 'bad', upTo: minute.completed + minute.notCompleted, figure: minute.notCompleted },
  ],
})}
${chart(minutes, {
  title: 'From row to completed',
  note: 'half of them, and 95 %',
  words: formatDuration,
  barsOf: ({ halfMs, mostMs }) => [
    { kind: 'half', upTo: halfMs ?? 0, figure: halfMs ?? 0 },
    { kind: '95 %', tone: 'weak', upTo: mostMs ?? 0, figure: mostMs ?? 0 },
  ],
})}
</div>`
}

/** It begins where the bar below it ends. */
interface Bar {
  kind: string
  tone?: 'weak' | 'good' | 'bad'
  upTo: number
  figure: number
}

interface Chart {
  title: string
  note: string
  barsOf(minute: MinuteOfLastHour): Bar[]
  /** A value at which a line is drawn. */
  line?: number | null
  words?: (value: number) => string
}

function chart(
  minutes: readonly MinuteOfLastHour[],
  { title, note, barsOf, line = null, words = String }: Chart,
): HtmlPart {
  const stacks = minutes.map((minute) => ({ time: timeOf(minute), bars: barsOf(minute) }))
  const most = Math.max(1, line ?? 0, ...stacks.flatMap(({ bars }) => bars.map(({ upTo }) => upTo)))
  const y = (value: number) => round(bottom - (value / most) * (bottom - top))
  const drawn = stacks.map(({ time, bars }, i) => {
    if (bars.every(({ upTo }) => upTo === 0)) return ''
    const said = bars.map(({ kind, figure }) => `${kind} ${words(figure)}`).join(', ')
    const rects = bars.map(({ tone, upTo }, j) => {
      const height = round(y(bars[j - 1]?.upTo ?? 0) - y(upTo))
      return height <= 0
        ? ''
        : html`<rect${tone && html` class="${tone}"`} x="${round(left + i * minuteWidth)}" y="${y(upTo)}" height="${height}"/>`
    })
    return html`<g><title>${time}: ${said}</title>${rects}</g>`
  })
  return html`<section class="chart"><h2>${title}</h2><p class="quiet">${note}</p>
<svg viewBox="0 0 ${width} ${height}" role="group" aria-label="${title}, each minute of the last hour">
<path class="axis" d="M${left} ${bottom}H${width - right}"/>
${line === null ? '' : html`<path class="line" d="M${left} ${y(line)}H${width - right}"/>`}
${drawn}
<text x="${left - 4}" y="${top + 7}" class="end">${words(most)}</text><text x="${left - 4}" y="${bottom}" class="end">0</text>
<text x="${left}" y="${height - 5}">${stacks[0]?.time}</text><text x="${width - right}" y="${height - 5}" class="end">now</text>
</svg></section>\n`
}

const timeOf = ({ atMs }: MinuteOfLastHour) => `${formatInstant(atMs).slice(11, 16)}Z`

const round = (value: number) => Math.round(value * 10) / 10
