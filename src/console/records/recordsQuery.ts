import type { ListOrder, ListPosition } from '../../ledger/operator/selectSubmissions.ts'
import { type State, states, statesNeedingAttention } from '../../model/submission.ts'
import { type FilterOptions, type ParsedFilters, parseListFilters } from '../../operations/filters.ts'
import { RequestRefused } from '../errors.ts'
import { cutAndEscapeText } from '../html/elements.ts'
import { checkbox, type OptionName, optionLabel, optionWords } from '../html/form.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'
import type { RecentChanges } from './changePage.ts'

const texts = ['code', 'type', 'key', 'since', 'until', 'transaction', 'containing', 'cause', 'limit'] as const

/** Those of an address, in this order. `changed` names a recent change, whose records are listed. */
const names = ['state', ...texts, 'may-have-arrived', 'newest', 'by-cause', 'changed', 'after'] as const

/** The fields of a list's address that are not empty. Several states are separated by commas. */
export type RecordsQuery = Readonly<Partial<Record<(typeof names)[number], string | undefined>>>

export type FormFields = Readonly<Record<string, string | readonly string[] | undefined>>

/** Leaves out empty values, which forms send. */
export function readRecordsQuery(fields: unknown): RecordsQuery {
  const given = names.map((name) => {
    const values = [(fields as FormFields)[name] ?? []].flat().filter((value) => value.trim() !== '')
    return [name, name === 'state' && values.length > 0 ? values.join(',') : values[0]] as const
  })
  return Object.fromEntries(given.filter(([, value]) => value !== undefined))
}

export const toFilterOptions = (query: RecordsQuery): FilterOptions => ({
  ...query,
  mayHaveArrived: query['may-have-arrived'] !== undefined,
})

export type ReadFilters = Extract<ParsedFilters, { kind: 'value' }>

/**
 * A key, and the records of a change, are looked for in all states.
 * @throws RequestRefused for a wrong filter
 */
export function readFilters(query: RecordsQuery, changes: RecentChanges, nowMs: number): ReadFilters {
  const { key, changed } = query
  const anyState = key === undefined && changed === undefined ? {} : { state: states.join() }
  const read = parseListFilters({ ...anyState, ...toFilterOptions(query) }, nowMs)
  if (read.kind === 'invalid') throw new RequestRefused(400, read.problems.join('\n'))
  return changed === undefined ? read : { ...read, filter: { ...read.filter, among: changes.get(changed).done } }
}

export const orderOf = ({ newest }: RecordsQuery): ListOrder => (newest === undefined ? 'longest' : 'newest')

/** Null for the first page. */
export function readPosition({ after = '' }: RecordsQuery): ListPosition | null {
  const [, micros, seq] = /^(\d{1,16})-(\d{1,18})$/.exec(after) ?? []
  return micros === undefined || seq === undefined ? null : { sinceMicros: Number(micros), seq }
}

export const positionText = ({ sinceMicros, seq }: ListPosition): string => `${sinceMicros}-${seq}`

export const queryEntries = (query: RecordsQuery): [name: string, value: string][] =>
  names.flatMap((name): [string, string][] => (query[name] === undefined ? [] : [[name, query[name]]]))

export function recordsPath(query: RecordsQuery, path = '/records'): string {
  const search = new URLSearchParams(queryEntries(query)).toString().replaceAll('%2C', ',').replaceAll('%3A', ':')
  return search === '' ? path : `${path}?${search}`
}

/** The address of a record of a list, so that its page says its place. A search by text would be logged again. */
export function recordPath(id: string, query: RecordsQuery): string {
  const list = { ...query, after: undefined, limit: undefined, 'by-cause': undefined }
  return recordsPath(query.containing === undefined ? list : {}, `/records/${id}`)
}

const underWay = ['queued', 'sending', 'accepted'] as const

/** Tabs without a state of their own are lists of any state, the newest first. */
const tabs: readonly { words: string; states: readonly State[]; query: RecordsQuery }[] = [
  { words: 'Needs attention', states: statesNeedingAttention, query: {} },
  { words: 'Under way', states: underWay, query: { state: underWay.join() } },
  { words: 'Completed', states: ['completed'], query: { state: 'completed', newest: 'on' } },
  { words: 'Discarded', states: ['discarded'], query: { state: 'discarded', newest: 'on' } },
  { words: 'All', states, query: { state: states.join(), newest: 'on' } },
]

/** @param listed the states of the list @param counts of all records by state; null while the ledger cannot be read */
export function tabsHtml(listed: readonly State[], counts: Record<State, number> | null): HtmlPart {
  const here = new Set(listed)
  const links = tabs.map(({ words, states: own, query: tab }) => {
    const isHere = own.length === here.size && own.every((state) => here.has(state))
    const count = counts === null ? '' : own.reduce((sum, state) => sum + counts[state], 0).toLocaleString('en')
    return html`<li><a href="${recordsPath(tab)}"${isHere ? html` aria-current="true"` : ''}>${words} <b>${count}</b></a></li>`
  })
  return html`<nav class="tabs" aria-label="Records by state"><ul>${links}</ul></nav>`
}

/** What narrows the list beside its tab, each with a link to the list without it. */
export const chipsHtml = (query: RecordsQuery): HtmlValue =>
  texts.map((name) => {
    const value = query[name]
    if (value === undefined) return ''
    const without = recordsPath({ ...query, after: undefined, [name]: undefined })
    return html`<a class="chip" href="${without}" title="Show the list without this filter">${optionWords[name]}: <bdi>${cutAndEscapeText(value, 40)}</bdi> ✕</a> `
  })

export function filterForm(query: RecordsQuery): HtmlPart {
  const chosen = query.state?.split(',') ?? []
  const ticks = states.map((state) => checkbox('state', state, { value: state, isOn: chosen.includes(state) }))
  const text = (name: OptionName & keyof RecordsQuery, hint = '') =>
    html`<label>${optionLabel(name)}<input name="${name}" value="${query[name]}" placeholder="${hint}"></label>\n`
  const tick = (name: keyof RecordsQuery, words: HtmlValue) =>
    checkbox(name, words, { isOn: query[name] !== undefined })
  return html`<details class="filters" id="filters"><summary>Filter</summary>
<search><form method="get" action="/records">
<fieldset><legend>State (none: what needs attention; with a key, transaction or text: all)</legend>${ticks}</fieldset>
<div class="fields">
${text('type')}${text('key')}${text('code', 'E001')}
${text('since', '2h, 3d, 2026-11-03')}${text('until', '2h, 3d, 2026-11-03')}
${text('transaction')}${text('containing', 'a customer, an order number')}
${text('cause')}${text('limit', '40')}
</div>
<p>${tick('may-have-arrived', optionLabel('may-have-arrived'))}
${tick('newest', 'Newest first')}
${tick('by-cause', 'One line per cause')}</p>
<p><button class="main">Show</button> <a href="/records">Without filters</a></p>
</form></search></details>`
}
