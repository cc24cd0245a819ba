import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import { type Performance, percent, performanceOf, targets, totalOf } from '../../cli/serviceTargets.ts'
import type { RecentCounts } from '../../ledger/requestCounts.ts'
import { table } from '../html/table.ts'

/** How the service does against its targets, over an hour, a day and 28 days. */
export function targetsSection(recent: RecentCounts): HtmlSafeString {
  const times = [
    ['hour', recent.lastHour],
    ['day', recent.lastDay],
    ['28\u00a0days', recent.last28Days],
  ] as const
  const rows = times.map(([name, counts]) => rowOf(name, performanceOf(totalOf(counts))))
  return html`<h2>The service, against its targets</h2>
${table(
  'the service against its targets',
  [
    { words: 'last' },
    { words: 'requests', kind: 'number' },
    { words: 'succeeded', kind: 'number' },
    { words: `in ${targets.answerSeconds} s`, kind: 'number' },
  ],
  rows,
)}`
}

function rowOf(name: string, { counts, successShare, fastShare }: Performance): HtmlValue[] {
  return [
    name,
    counts.requests.toLocaleString('en'),
    against(successShare, targets.successShare),
    against(fastShare, targets.fastShare),
  ]
}

function against(share: number | null, target: number): HtmlValue {
  if (share === null) return html`<span class="quiet">none</span>`
  return share < target ? html`<span class="bad">below: ${percent(share)}</span>` : percent(share)
}
