import { type HtmlSafeString, html } from '@prairielearn/html'
import type { BudgetSlots, BusySlot } from '../../ledger/operator/readActivity.ts'
import { showDuration } from '../../time.ts'
import { emptyNote } from '../html/elements.ts'

const words: Record<MarkKind, string> = {
  submissions: 'submissions',
  polls: 'polls',
  others: 'tokens and trials',
  inHand: 'under way',
  heldBack: 'held back',
}

export function budgetSection(window: BudgetWindow): HtmlSafeString {
  if (window.capacity === 0)
    return html`<h2>Budget</h2>${emptyNote('There is no budget yet. The first daemon that starts sets it.')}`
  const seconds = showDuration(window.windowMs)
  return html`<h2>Budget</h2>
<p><strong class="number">${window.free}</strong> of <span class="number">${window.capacity}</span> requests free${nextFree(window)}</p>
${picture(window, seconds)}
<ul class="legend">${markKinds.map(
    (kind) =>
      html`<li><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true"><path class="mark ${kind}" d="M1 1h8v8h-8z"/></svg>
${words[kind]} <span class="number">${window.counts[kind]}</span></li>\n`,
  )}</ul>
<p class="quiet">Each mark is a request at the time of its answer. Its slot is free again ${seconds} later.</p>`
}

function nextFree({ free, capacity, nextFreeMs }: BudgetWindow): string {
  if (nextFreeMs === null || free === capacity) return ''
  return nextFreeMs < 1_000 ? ', the next within a second' : `, the next in ${showDuration(nextFreeMs)}`
}

const columns = 60
const columnWidth = 10
const height = 100
const unitMax = 8

function picture(window: BudgetWindow, seconds: string): HtmlSafeString {
  const paths = marksToSvgPaths(window)
  const width = columns * columnWidth
  const said = markKinds.map((kind) => `${window.counts[kind]} ${words[kind]}`).join(', ')
  return html`<svg class="window" viewBox="0 0 ${width} ${height + 1}" role="img" aria-label="The last ${seconds}: ${said}, ${window.free} free">
<path class="axis" d="M0 ${height + 0.5}h${width}"/>
${markKinds.map((kind) => (paths[kind] === '' ? '' : html`<path class="mark ${kind}" d="${paths[kind]}"/>\n`))}
</svg>
<p class="scale"><span>${seconds} ago</span><span>now</span></p>`
}

export function marksToSvgPaths({
  marks,
  windowMs,
}: Pick<BudgetWindow, 'marks' | 'windowMs'>): Record<MarkKind, string> {
  const stacks = Map.groupBy(marks, ({ ageMs }) => columnOf(ageMs, windowMs))
  const heights = [...stacks.values()].map((stack) => requestsOf(stack))
  const unit = Math.min(unitMax, height / Math.max(1, ...heights))
  const paths: Record<MarkKind, string> = { submissions: '', polls: '', others: '', inHand: '', heldBack: '' }
  for (const [column, stack] of stacks) {
    let top = height
    for (const { kind, requests } of stack.toSorted((a, b) => markKinds.indexOf(a.kind) - markKinds.indexOf(b.kind))) {
      const tall = requests * unit
      top -= tall
      const gap = tall > 3 ? 1 : 0
      paths[kind] +=
        `M${column * columnWidth + 1} ${round(top + gap)}h${columnWidth - 2}v${round(tall - gap)}h${2 - columnWidth}z`
    }
  }
  return paths
}

function columnOf(ageMs: number, windowMs: number): number {
  return columns - 1 - Math.min(columns - 1, Math.floor((ageMs / windowMs) * columns))
}

const requestsOf = (stack: readonly Mark[]) => stack.reduce((sum, { requests }) => sum + requests, 0)
const round = (length: number) => Math.round(length * 100) / 100

const markKinds = ['submissions', 'polls', 'others', 'inHand', 'heldBack'] as const
type MarkKind = (typeof markKinds)[number]

export interface Mark {
  kind: MarkKind
  requests: number
  ageMs: number
}

export interface BudgetWindow {
  windowMs: number
  capacity: number
  free: number
  counts: Record<MarkKind, number>
  marks: Mark[]
  nextFreeMs: number | null
}

export function budgetWindow({ nowMs, windowMs, capacity, busy }: BudgetSlots): BudgetWindow {
  const marks = busy.flatMap((slot) => marksOf(slot, nowMs, windowMs))
  const count = (kind: MarkKind) => marks.reduce((sum, mark) => sum + (mark.kind === kind ? mark.requests : 0), 0)
  const counts = Object.fromEntries(markKinds.map((kind) => [kind, count(kind)])) as Record<MarkKind, number>
  const taken = marks.reduce((sum, { requests }) => sum + requests, 0)
  const nextFreeMs = busy.length === 0 ? null : Math.max(0, Math.min(...busy.map(({ freeMs }) => freeMs)) - nowMs)
  return { windowMs, capacity, free: capacity - taken, counts, marks, nextFreeMs }
}

function marksOf(slot: BusySlot, nowMs: number, windowMs: number): Mark[] {
  // The lease of a dead instance can be older than the window.
  const ageMs = Math.min(Math.max(0, nowMs - slot.setMs), windowMs)
  if (slot.isTaken) return [{ kind: 'inHand', requests: slot.permits, ageMs }]
  let left = slot.permits
  const spent = (['submissions', 'polls', 'others'] as const).flatMap((kind): Mark[] => {
    // An older version writes only its submissions, and leaves stale counts of polls.
    const requests = Math.min(slot[kind], left)
    left -= requests
    return requests > 0 ? [{ kind, requests, ageMs }] : []
  })
  // Another client used these requests, or they were given back unused.
  return left > 0 ? [...spent, { kind: 'heldBack', requests: left, ageMs }] : spent
}
