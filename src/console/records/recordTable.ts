import type { FailureCause } from '../../ledger/operator/search.ts'
import type { ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import {
  type Column,
  cutAndEscapeText,
  relativeTimeHtml,
  stateBadge,
  table,
  untrustedTextHtml,
} from '../html/elements.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'
import type { ListValues } from './listValues.ts'
import { type RecordsQuery, recordPath, recordsPath } from './recordsQuery.ts'

export function recordTable(
  ariaLabel: string,
  submissions: readonly ListedSubmission[],
  nowMs: number,
  { query = {}, values, hasTicks = false }: { query?: RecordsQuery; values?: ListValues; hasTicks?: boolean } = {},
): HtmlPart {
  const columns: readonly Column[] = [
    { words: 'Choose', kind: 'tick' },
    { words: 'Record', kind: 'key' },
    { words: 'State', kind: 'badge' },
    ...(values?.columns ?? []),
    { words: 'Why', kind: 'why' },
    { words: 'Since', kind: 'since' },
  ]
  const hasTypes = new Set(submissions.map(({ type }) => type)).size > 1
  const rows = submissions.map((submission) => {
    const { id, outboxId, key, type, state, sinceMs } = submission
    const name = key ?? `row ${outboxId}`
    const more = [
      key === null ? '' : ` row ${cutAndEscapeText(outboxId, 36)}`,
      hasTypes ? ` ${cutAndEscapeText(type, 24)}` : '',
    ]
    return [
      html`<input type="checkbox" name="id" value="${id}" aria-label="${cutAndEscapeText(name, 44)}">`,
      html`<a href="${recordPath(id, query)}">${untrustedTextHtml(name, 40)}</a><small>${more}</small>`,
      stateBadge(state),
      ...(values?.cellsOf(submission) ?? []),
      whyHtml(submission),
      relativeTimeHtml(sinceMs, nowMs),
    ]
  })
  const first = hasTicks ? 0 : 1
  return table(
    ariaLabel,
    columns.slice(first),
    rows.map((cells) => cells.slice(first)),
    'records',
  )
}

const mayHaveArrivedHtml = html`<strong class="attention">may have arrived</strong> `

function whyHtml({ error, code, mayHaveArrived, transactionId }: ListedSubmission): HtmlValue {
  if (error === null && code === null && transactionId !== null)
    return html`<span class="quiet">transaction ${untrustedTextHtml(transactionId, 60)}</span>`
  const hasCode = code === null || error?.includes(code)
  return [
    mayHaveArrived ? mayHaveArrivedHtml : '',
    error === null && hasCode ? '' : untrustedTextHtml(`${hasCode ? '' : `${code}: `}${error ?? ''}`, 160),
  ]
}

/**
 * Undecided records come first, because only a person can decide them.
 *
 * @param query of the list that each cause narrows
 */
export function causesList(
  causes: readonly FailureCause[],
  query: RecordsQuery,
  nowMs: number,
  most = causes.length,
): HtmlPart {
  const isUndecided = ({ state, mayHaveArrived }: FailureCause) => state === 'uncertain' || mayHaveArrived
  const sorted = causes.toSorted((a, b) => Number(isUndecided(b)) - Number(isUndecided(a)))
  const items = sorted.slice(0, most).map(({ cause, count, state, mayHaveArrived, shape, code, lastMs }) => {
    const words = shape === '' ? (code ?? 'no reason is known') : shape
    return html`<li><a href="${recordsPath({ ...query, state, cause })}"><b>${count.toLocaleString('en')}</b>${stateBadge(state)}
<span class="why">${mayHaveArrived ? mayHaveArrivedHtml : ''}${untrustedTextHtml(words, 300)}</span>${relativeTimeHtml(lastMs, nowMs)}</a></li>\n`
  })
  return html`<ul class="causes">${items}</ul>`
}
