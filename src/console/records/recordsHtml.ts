import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import type { Cause } from '../../ledger/operator/search.ts'
import type { ListedSubmission, SubmissionFilter, SubmissionPage } from '../../ledger/operator/selectSubmissions.ts'
import { arrivalNote } from '../../operations/submissionFacts.ts'
import { pluralize } from '../../plainText.ts'
import type { Viewer } from '../guard/viewer.ts'
import {
  ageHtml,
  type Column,
  emptyNote,
  foreignText,
  foreignTextHtml,
  notice,
  paragraph,
  section,
  table,
} from '../html/elements.ts'
import { form, hiddenField } from '../html/form.ts'
import { layout } from '../html/layout.ts'
import { filterForm, queryFields, type RecordsQuery, recordsPath } from './recordsQuery.ts'

export interface RecordsView {
  query: RecordsQuery
  problems: string[]
  listed: Listed | null
  skippedRows: string[]
  nowMs: number
}

export type Listed = { filter: SubmissionFilter; cut: string | null } & (
  | { kind: 'page'; page: SubmissionPage; total: number }
  | { kind: 'causes'; causes: Cause[]; lookedAt: number; isCut: boolean }
)

export const recordsCountedMax = 1_000

export function renderRecords(view: RecordsView, viewer: Viewer): string {
  const { query, problems, listed, skippedRows } = view
  const wrong = problems.map(paragraph)
  const skipped = skippedRows.map(paragraph)
  return layout({ title: 'Records', current: '/records', viewer }, [
    wrong.length > 0 ? notice('bad', wrong) : '',
    skipped.length > 0 ? notice('attention', skipped) : '',
    filterForm(query),
    listed?.cut ? notice('attention', paragraph(listed.cut)) : '',
    listed === null ? '' : listed.kind === 'page' ? pageOf(view, listed, viewer) : causesOf(view, listed),
  ])
}

function pageOf(view: RecordsView, { page, total }: Extract<Listed, { kind: 'page' }>, viewer: Viewer): HtmlValue {
  if (page.submissions.length === 0) return noneOf(view)
  const rows = viewer.canChange
    ? form({ action: '/records/choose', viewer, class: 'list' }, [
        hiddenQuery(view),
        recordTable('Records', page.submissions, view.nowMs, true),
        turns(view, page),
        changeButtons,
      ])
    : [recordTable('Records', page.submissions, view.nowMs), turns(view, page)]
  return section('listed', totalWords(total), rows)
}

const totalWords = (total: number) =>
  total > recordsCountedMax
    ? `More than ${recordsCountedMax} records match`
    : `${pluralize(total, 'record')} ${total === 1 ? 'matches' : 'match'}`

function noneOf({ query }: RecordsView): HtmlValue {
  if (query.from !== null)
    return emptyNote(
      html`There are no more records here. <a href="${recordsPath({ ...query, from: null })}">First page</a>`,
    )
  const hasFilters = Object.keys(query.filters).length > 0
  return emptyNote(
    hasFilters
      ? html`No record matches. <a href="/records">Without filters</a>`
      : html`No record needs attention. <a href="/records?state=queued,sending,accepted">What is under way</a>`,
  )
}

/** The query of the whole list, for a change to all that match. */
const hiddenQuery = ({ query }: RecordsView) =>
  queryFields({ ...query, from: null, byCause: false })
    .filter(([name]) => name !== 'limit')
    .map(([name, value]) => hiddenField(name, value))

const columns: readonly Column[] = ['Record', 'Type', 'Key', 'State', 'Code', 'Since', 'Note', 'Error']

export function recordTable(
  name: string,
  submissions: readonly ListedSubmission[],
  nowMs: number,
  isChosen = false,
): HtmlSafeString {
  const tick: Column = { words: html`<span class="unseen">Choose</span>` }
  return table(
    name,
    isChosen ? [tick, ...columns] : columns,
    submissions.map((submission) => [...(isChosen ? [tickFor(submission)] : []), ...recordCells(submission, nowMs)]),
  )
}

const tickFor = ({ id, outboxId }: ListedSubmission) =>
  html`<input type="checkbox" name="id" value="${id}" aria-label="${foreignText(`outbox:${outboxId}`, 44)}">`

function recordCells(submission: ListedSubmission, nowMs: number): HtmlValue[] {
  const { id, outboxId, type, key, state, code, sinceMs, error } = submission
  return [
    html`<a href="/records/${id}">${foreignTextHtml(outboxId, 36)}</a>`,
    foreignTextHtml(type, 24),
    key === null ? '–' : foreignTextHtml(key, 24),
    state,
    code === null ? '–' : foreignTextHtml(code, 16),
    ageHtml(sinceMs, nowMs),
    submission.mayHaveArrived ? html`<strong class="attention">${arrivalNote(submission)}</strong>` : '',
    error === null ? '' : foreignTextHtml(error, 160),
  ]
}

function turns({ query }: RecordsView, { ends, goesOn }: SubmissionPage): HtmlValue {
  if (ends === null) return ''
  const isBack = query.from?.way === 'before'
  const hasFormer = isBack ? goesOn : query.from !== null
  const hasNext = isBack || goesOn
  const link = (way: 'after' | 'before', words: string) => {
    const position = way === 'after' ? ends.last : ends.first
    return html`<a href="${recordsPath({ ...query, from: { way, position } })}" rel="${way === 'after' ? 'next' : 'prev'}">${words}</a>`
  }
  const first = html`<a href="${recordsPath({ ...query, from: null })}">First page</a>`
  if (!hasFormer && !hasNext) return ''
  return html`<p class="turns">${hasFormer ? [first, ' ', link('before', 'Previous page')] : ''} ${hasNext ? link('after', 'Next page') : ''}</p>`
}

const changeButtons = html`<p class="buttons">
<button name="do" value="replay-ticked">Replay the ticked …</button>
<button name="do" value="discard-ticked">Discard the ticked …</button>
<button name="do" value="replay-all">Replay all that match …</button>
<button name="do" value="discard-all">Discard all that match …</button>
</p>
<p class="quiet">Each shows a preview first.</p>`

function causesOf(
  { query, nowMs }: RecordsView,
  { causes, lookedAt, isCut }: Extract<Listed, { kind: 'causes' }>,
): HtmlValue {
  if (causes.length === 0) return emptyNote(html`No record matches. <a href="/records">Without filters</a>`)
  const link = ({ cause, state, count }: Cause) =>
    html`<a href="${recordsPath({ ...query, byCause: false, filters: { ...query.filters, state, cause } })}">${count}</a>`
  const rows = causes.map((cause) => [
    link(cause),
    cause.mayHaveArrived ? html`${cause.state}, <strong class="attention">may have arrived</strong>` : cause.state,
    cause.code === null ? '–' : foreignTextHtml(cause.code, 16),
    ageHtml(cause.firstMs, nowMs),
    ageHtml(cause.lastMs, nowMs),
    foreignTextHtml(cause.types.join(', '), 24),
    foreignTextHtml(cause.shape, 300),
  ])
  const cutWords = `Only the newest ${lookedAt} records were read. Narrow the list with “In its state since”.`
  return section('causes', 'Causes, the most frequent first', [
    isCut ? notice('attention', paragraph(cutWords)) : '',
    table('Causes', [{ number: 'Records' }, 'State', 'Code', 'First', 'Last', 'Type', 'Reason'], rows),
    html`<p>Fix the cause before you replay: the mapping, the row, or what the service lacks.</p>`,
  ])
}
