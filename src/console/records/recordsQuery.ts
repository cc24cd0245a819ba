import type { ListOrder, PageWanted } from '../../ledger/operator/selectSubmissions.ts'
import { type State, states, statesNeedingAttention } from '../../model/submission.ts'
import type { FilterOptions } from '../../operations/filters.ts'
import { cutAndEscapeText } from '../html/elements.ts'
import { checkbox, type OptionName, optionLabel, optionWords } from '../html/form.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'

export interface RecordsQuery {
  filters: FilterOptions
  order: ListOrder
  byCause: boolean
  from: PageWanted['from']
  /** The name of a recent change, whose records these are. */
  changed: string | null
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
    changed: all(fields, 'changed')[0] ?? null,
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

export function toQueryFields({
  filters,
  order,
  byCause,
  from,
  changed,
}: RecordsQuery): [name: string, value: string][] {
  const given: [string, string | undefined][] = [
    ['state', filters.state],
    ...texts.map((name): [string, string | undefined] => [name, filters[name]]),
    ['may-have-arrived', filters.mayHaveArrived ? 'on' : undefined],
    ['newest', order === 'newest' ? 'on' : undefined],
    ['by-cause', byCause ? 'on' : undefined],
    ['changed', changed ?? undefined],
    ['after', from === null ? undefined : `${from.sinceMicros}-${from.seq}`],
  ]
  return given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
}

export function recordsPath(query: RecordsQuery, path = '/records'): string {
  const search = new URLSearchParams(toQueryFields(query)).toString().replaceAll('%2C', ',').replaceAll('%3A', ':')
  return search === '' ? path : `${path}?${search}`
}

const underWay = ['queued', 'sending', 'accepted'] as const

/** Tabs without a state of their own are lists of any state, the newest first. */
const tabs: readonly { words: string; states: readonly State[]; query: string }[] = [
  { words: 'Needs attention', states: statesNeedingAttention, query: '' },
  { words: 'Under way', states: underWay, query: `?state=${underWay.join(',')}` },
  { words: 'Completed', states: ['completed'], query: '?state=completed&newest=on' },
  { words: 'Discarded', states: ['discarded'], query: '?state=discarded&newest=on' },
  { words: 'All', states, query: `?state=${states.join(',')}&newest=on` },
]

/** @param counts of all records by state; null while the ledger cannot be read */
export function tabsHtml(query: RecordsQuery, counts: Record<State, number> | null): HtmlPart {
  const here = new Set(query.filters.state?.split(',') ?? (query.changed === null ? statesNeedingAttention : []))
  const links = tabs.map(({ words, states: own, query: search }) => {
    const isHere = own.length === here.size && own.every((state) => here.has(state))
    const count = counts === null ? '' : own.reduce((sum, state) => sum + counts[state], 0).toLocaleString('en')
    return html`<li><a href="/records${search}"${isHere ? html` aria-current="true"` : ''}>${words} <b>${count}</b></a></li>`
  })
  return html`<nav class="tabs" aria-label="Records by state"><ul>${links}</ul></nav>`
}

/** What narrows the list beside its tab, each with a link to the list without it. */
export function chipsHtml(query: RecordsQuery): HtmlValue {
  const { filters } = query
  return texts.map((name) => {
    const value = filters[name]
    if (value === undefined) return ''
    const without = recordsPath({ ...query, from: null, filters: { ...filters, [name]: undefined } })
    return html`<a class="chip" href="${without}" title="Show the list without this filter">${optionWords[name]}: <bdi>${cutAndEscapeText(value, 40)}</bdi> ✕</a> `
  })
}

export function filterForm({ filters, order, byCause }: RecordsQuery): HtmlPart {
  const chosen = filters.state?.split(',') ?? []
  const ticks = states.map((state) => checkbox('state', state, { value: state, isOn: chosen.includes(state) }))
  return html`<details class="filters" id="filters"><summary>Filter</summary>
<search><form method="get" action="/records">
<fieldset><legend>State (none: what needs attention; with a key, transaction or text: all)</legend>${ticks}</fieldset>
<div class="fields">
${text('type', filters.type)}${text('key', filters.key)}${text('code', filters.code, 'E001')}
${text('since', filters.since, '2h, 3d, 2026-11-03')}${text('until', filters.until, '2h, 3d, 2026-11-03')}
${text('transaction', filters.transaction)}${text('containing', filters.containing, 'a customer, an order number')}
${text('cause', filters.cause)}${text('limit', filters.limit, '40')}
</div>
<p>${checkbox('may-have-arrived', optionLabel('may-have-arrived'), { isOn: filters.mayHaveArrived ?? false })}
${checkbox('newest', 'Newest first', { isOn: order === 'newest' })}
${checkbox('by-cause', 'One line per cause', { isOn: byCause })}</p>
<p><button class="main">Show</button> <a href="/records">Without filters</a></p>
</form></search></details>`
}

const text = (name: OptionName, value: string | undefined, hint = '') =>
  html`<label>${optionLabel(name)}<input name="${name}" value="${value ?? ''}" placeholder="${hint}"></label>\n`
