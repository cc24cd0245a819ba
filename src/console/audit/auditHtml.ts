import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import type { ActRecord, OperatorLogEntry, OperatorLogPosition } from '../../ledger/audit/readOperatorActs.ts'
import { escapeControl } from '../../plainText.ts'
import { emptyNote, foreignText, momentHtml, notice, table } from '../html/elements.ts'

export interface AuditQuery {
  since: string | undefined
  until: string | undefined
  who: string | undefined
  key: string | undefined
  record: string | undefined
}

interface AuditView {
  query: AuditQuery
  problems: readonly string[]
  acts: readonly OperatorLogEntry[]
  next: OperatorLogPosition | null
}

export function auditHtml({ query, problems, acts, next }: AuditView): HtmlValue {
  return html`${filters(query)}
${problems.map((problem) => notice('bad', html`<p>${problem}</p>`))}
${problems.length > 0 ? '' : html`<section>${actsTable(acts, query)}${next === null ? '' : html`<p><a href="${addressOf(query, next)}">Older</a></p>`}</section>`}
<p class="quiet"><a href="/audit.csv?${spanOf(query)}" download>As CSV</a>: a line per record that ended in this time, with its amounts, the times of its steps, and what
operators did, like <code>outboxd audit --csv</code>. Downloads are logged.</p>`
}

function filters({ since, until, who, key, record }: AuditQuery): HtmlSafeString {
  const field = (name: string, words: string, value: string | undefined, hint: string) =>
    html`<label>${words} <input name="${name}" value="${value ?? ''}" placeholder="${hint}"></label> `
  return html`<form method="get" action="/audit" class="line">
${field('since', 'Since', since, '7d, 2026-11-01')}${field('until', 'Until', until, '2026-12-01')}
${field('who', 'Who', who, 'part of a name')}${field('key', 'Key', key, "a record's key")}
${field('record', 'Record', record, 'outbox:4711')}
<button>Show</button>
</form>`
}

function actsTable(acts: readonly OperatorLogEntry[], query: AuditQuery): HtmlSafeString {
  if (acts.length === 0) {
    const isNarrowed = Object.values(query).some((value) => value !== undefined)
    return emptyNote(isNarrowed ? 'No act matches.' : 'No operator has changed anything yet.')
  }
  return table(
    'Who did what',
    ['When', 'Who', 'What', 'Record', 'Why', 'From'],
    acts.map(({ atMs, who, what, untilMs, records, unnamed, reason, account }) => [
      momentHtml(atMs),
      shown(who),
      html`${shown(what)}${untilMs === null ? '' : html` until ${momentHtml(untilMs)}`}`,
      recordsCell(records, unnamed),
      reason === null ? '' : html`<span class="foreign reason">${shown(reason)}</span>`,
      shown(account ?? ''),
    ]),
  )
}

const recordsShown = 5

function recordsCell(records: readonly ActRecord[], unnamed: string | null): HtmlValue {
  const links = records
    .slice(0, recordsShown)
    .map(
      ({ id, outboxId, type, key }, i) =>
        html`${i > 0 ? ', ' : ''}<a href="/records/${encodeURIComponent(id)}">${shown(`outbox:${outboxId}`)}</a> ${shown(type)}${key === null ? '' : `, key ${foreignText(key, 40)}`}`,
    )
  if (unnamed === 'all') return 'all records'
  const more = Math.max(0, records.length - recordsShown) + Number(unnamed ?? 0)
  return more > 0 ? [links, ` and ${more} more`] : links
}

const shown = (text: string) => escapeControl(text)

function addressOf(query: AuditQuery, { event, act }: OperatorLogPosition): string {
  return `/audit?${new URLSearchParams([...given(query), ['event', event], ['act', act]])}`
}

const spanOf = ({ since, until, key, record }: AuditQuery) =>
  new URLSearchParams(given({ since, until, key, record })).toString()

const given = (query: Partial<AuditQuery>) =>
  Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as [string, string]]))
