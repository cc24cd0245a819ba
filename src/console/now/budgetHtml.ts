import { type HtmlSafeString, html } from '@prairielearn/html'
import type { BudgetSlots } from '../../ledger/snapshot.ts'
import { formatDuration } from '../../time.ts'
import { nothingToShow } from '../html/elements.ts'

const words = {
  submissions: 'submissions',
  polls: 'polls',
  others: 'tokens and trials',
  inHand: 'under way',
  heldBack: 'held back',
}

export function budgetSection(slots: BudgetSlots): HtmlSafeString {
  const { capacity, windowMs } = slots
  if (capacity === 0)
    return html`<h2>Budget</h2>${nothingToShow('There is no budget yet. The first daemon that starts sets it.')}`
  const { counts, free, nextFreeMs } = summarizeBudget(slots)
  const next =
    nextFreeMs === null
      ? ''
      : `, the next ${nextFreeMs < 1_000 ? 'within a second' : `in ${formatDuration(nextFreeMs)}`}`
  const kinds = Object.entries(words).map(([kind, name]) => `${counts[kind as keyof typeof words]} ${name}`)
  return html`<h2>Budget</h2>
<p><strong class="number">${free}</strong> of <span class="number">${capacity}</span> requests free${next}</p>
<p class="quiet">The last ${formatDuration(windowMs)}: ${kinds.join(', ')}.</p>`
}

export function summarizeBudget({ nowMs, capacity, busy }: BudgetSlots) {
  const counts = { submissions: 0, polls: 0, others: 0, inHand: 0, heldBack: 0 }
  for (const slot of busy) {
    if (slot.isTaken) {
      counts.inHand += slot.permits
      continue
    }
    for (const kind of ['submissions', 'polls', 'others'] as const) counts[kind] += slot[kind]
    counts.heldBack += slot.permits - slot.submissions - slot.polls - slot.others
  }
  const taken = busy.reduce((sum, { permits }) => sum + permits, 0)
  const nextFreeInMs = busy.length === 0 ? null : Math.max(0, Math.min(...busy.map(({ freeMs }) => freeMs)) - nowMs)
  return { counts, free: capacity - taken, nextFreeMs: nextFreeInMs }
}
