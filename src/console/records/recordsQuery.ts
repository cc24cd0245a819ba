import type { ListOrder, PageWanted } from '../../ledger/operator/selectSubmissions.ts'
import { states } from '../../model/submission.ts'
import type { FilterOptions } from '../../operations/filters.ts'
import { checkbox, type OptionName, optionLabel } from '../html/form.ts'
import { type HtmlPart, html } from '../html/html.ts'

export interface RecordsQuery {
  filters: FilterOptions
  order: ListOrder
  byCause: boolean
  from: PageWanted['from']
}

export const pageRowsMax = 200

const texts = ['code', 'type', 'key', 'since', 'until', 'transaction', 'containing', 'cause', 'limit'] as const

export type FormFields = Readonly<Record<string, string | readonly string[] | undefined>>

export function toRecordsQuery(fields: FormFields): RecordsQuery {
  const filters: FilterOptions = {}
  const states = all(fields, 'state').join(',')
  if (states !== '') filters.state = states
  for (const name of texts) {
    const [value = ''] = all(fields, name)
    if (value !== '') filters[name] = value
  }
  if (all(fields, 'may-have-arrived').length > 0) filters.mayHaveArrived = true
  return {
    filters,
    order: all(fields, 'newest').length > 0 ? 'newest' : 'longest',
    byCause: all(fields, 'by-cause').length > 0,
    from: readFrom(fields),
  }
}

/** Leaves out empty values, which forms send. */
function all(fields: FormFields, name: string): string[] {
  const value = fields[name]
  return [value ?? []].flat().filter((each) => each.trim() !== '')
}

function readFrom(fields: FormFields): PageWanted['from'] {
  const [text = ''] = all(fields, 'after')
  const [, micros, seq] = /^(\d{1,16})-(\d{1,18})$/.exec(text) ?? []
  return micros === undefined || seq === undefined ? null : { sinceMicros: Number(micros), seq }
}

export function toQueryFields({ filters, order, byCause, from }: RecordsQuery): [name: string, value: string][] {
  const given: [string, string | undefined][] = [
    ['state', filters.state],
    ...texts.map((name): [string, string | undefined] => [name, filters[name]]),
    ['may-have-arrived', filters.mayHaveArrived ? 'on' : undefined],
    ['newest', order === 'newest' ? 'on' : undefined],
    ['by-cause', byCause ? 'on' : undefined],
    ['after', from === null ? undefined : `${from.sinceMicros}-${from.seq}`],
  ]
  return given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
}

export function recordsPath(query: RecordsQuery): string {
  const search = new URLSearchParams(toQueryFields(query)).toString().replaceAll('%2C', ',').replaceAll('%3A', ':')
  return search === '' ? '/records' : `/records?${search}`
}

const ways: readonly [words: string, path: string][] = [
  ['Needs attention', '/records'],
  ['By cause', '/records?by-cause=on'],
  ['Under way', '/records?state=queued,sending,accepted'],
  ['Completed', '/records?state=completed&newest=on'],
  ['All', `/records?state=${states.join(',')}&newest=on`],
]

export function filterForm(query: RecordsQuery): HtmlPart {
  const { filters, order, byCause } = query
  const here = recordsPath({ ...query, from: null })
  const links = ways.map(([words, path]) =>
    path === here
      ? html`<li><a href="${path}" aria-current="true">${words}</a></li>`
      : html`<li><a href="${path}">${words}</a></li>`,
  )
  const chosen = filters.state?.split(',') ?? []
  const ticks = states.map((state) => checkbox('state', state, { value: state, isOn: chosen.includes(state) }))
  const isOpen = Object.keys(filters).some((name) => name !== 'state')
  return html`<search>
<nav aria-label="Common filters"><ul>${links}</ul></nav>
<details class="filters"${isOpen ? html` open` : ''}><summary>Filters</summary>
<form method="get" action="/records" class="filters">
<fieldset><legend>State (none: what needs attention; with a key, transaction or text: all)</legend>${ticks}</fieldset>
<div class="fields">
${text('type', filters.type)}${text('key', filters.key)}${text('code', filters.code, 'E001')}
${text('since', filters.since, '2h, 3d, 2026-11-03')}${text('until', filters.until, '2h, 3d, 2026-11-03')}
${text('transaction', filters.transaction)}${text('containing', filters.containing, 'a customer, an order number')}
${text('cause', filters.cause)}${text('limit', filters.limit, '50')}
</div>
<p>${checkbox('may-have-arrived', optionLabel('may-have-arrived'), { isOn: filters.mayHaveArrived ?? false })}
${checkbox('newest', 'Newest first', { isOn: order === 'newest' })}
${checkbox('by-cause', 'One line per cause', { isOn: byCause })}</p>
<p><button class="main">Show</button> <a href="/records">Without filters</a></p>
</form></details>
</search>`
}

const text = (name: OptionName, value: string | undefined, hint = '') =>
  html`<label>${optionLabel(name)}<input name="${name}" value="${value ?? ''}" placeholder="${hint}"></label>\n`
