import { type HtmlSafeString, html } from '@prairielearn/html'
import { states } from '../../model.ts'
import { fieldWords } from '../html/advice.ts'
import { tick } from '../html/fields.ts'
import { type RecordsQuery, recordsPath } from './recordsQuery.ts'

/** Ways into the list that are often taken, each an address. */
const ways: readonly [words: string, path: string][] = [
  ['Waits for a person', '/records'],
  ['By cause', '/records?by-cause=on'],
  ['Under way', '/records?state=queued,sending,accepted'],
  ['Completed', '/records?state=completed&newest=on'],
  ['All', `/records?state=${states.join(',')}&newest=on`],
]

/** The filters of `outboxd list`, each under its name: what is asked for stands in the address. */
export function filterForm(query: RecordsQuery): HtmlSafeString {
  const { filters, order, byCause } = query
  const here = recordsPath({ ...query, from: null })
  const links = ways.map(([words, path]) =>
    path === here
      ? html`<li><a href="${path}" aria-current="true">${words}</a></li>`
      : html`<li><a href="${path}">${words}</a></li>`,
  )
  const chosen = filters.state?.split(',') ?? []
  const ticks = states.map((state) => tick('state', state, { value: state, isOn: chosen.includes(state) }))
  const isOpen = Object.keys(filters).some((name) => name !== 'state')
  return html`<search>
<nav aria-label="Often looked at"><ul>${links}</ul></nav>
<details class="filters"${isOpen ? html` open` : ''}><summary>Filters</summary>
<form method="get" action="/records" class="filters">
<fieldset><legend>${fieldWords.state}; none: what waits for a person</legend>${ticks}</fieldset>
<div class="fields">
${text('type', filters.type)}${text('key', filters.key)}${text('code', filters.code, 'E001')}
${text('since', filters.since, '2h, 3d, 2026-11-03')}${text('until', filters.until, '2h, 3d, 2026-11-03')}
${text('transaction', filters.transaction)}${text('containing', filters.containing, 'a customer, an order number')}
${text('cause', filters.cause)}${text('limit', filters.limit, '50')}
</div>
<p>${tick('may-have-arrived', fieldWords['may-have-arrived'], { isOn: filters.mayHaveArrived ?? false })}
${tick('newest', 'Newest first', { isOn: order === 'newest' })}
${tick('by-cause', 'One line a cause', { isOn: byCause })}</p>
<p><button class="main">Show</button> <a href="/records">Without filters</a></p>
</form></details>
</search>`
}

const text = (name: keyof typeof fieldWords, value: string | undefined, hint = '') =>
  html`<label>${fieldWords[name]}<input name="${name}" value="${value ?? ''}" placeholder="${hint}"></label>\n`
