import type { BudgetUse } from '../../ledger/snapshot.ts'
import { formatDuration } from '../../time.ts'
import { nothingToShow } from '../html/elements.ts'
import { type HtmlPart, html } from '../html/html.ts'

export function budgetHtml(budget: BudgetUse): HtmlPart {
  const { limit, windowMs, free, nextFreeMs } = budget
  if (limit === 0) return html`${nothingToShow('There is no budget yet. The first daemon that starts sets it.')}`
  const next =
    nextFreeMs === null
      ? ''
      : `, the next ${nextFreeMs < 1_000 ? 'within a second' : `in ${formatDuration(nextFreeMs)}`}`
  return html`<p><strong class="number">${free}</strong> of <span class="number">${limit}</span> requests free${next}</p>
<p class="quiet">The last ${formatDuration(windowMs)}: ${budget.submissions} submissions, ${budget.polls} polls, ${budget.tokens} for tokens, ${budget.questions} trials and questions, ${budget.ofOtherClients} of other clients. Under way: ${budget.underWay}.</p>`
}
