import type { FastifyInstance } from 'fastify'
import { countFailureCauses, type FailureCause } from '../../ledger/operator/search.ts'
import {
  countSubmissions,
  type ListedSubmission,
  type SubmissionFilter,
  type SubmissionPage,
  selectSubmissionPage,
} from '../../ledger/operator/selectSubmissions.ts'
import { readProblems } from '../../ledger/problems.ts'
import { states } from '../../model/submission.ts'
import { narrowFilterByText, type ParsedFilters, parseListFilters } from '../../operations/filters.ts'
import { skippedRowMessages } from '../../operations/problemMessages.ts'
import { mayHaveArrivedCell } from '../../operations/submissionFacts.ts'
import { pluralize } from '../../plainText.ts'
import type { Viewer } from '../guard/viewer.ts'
import {
  type Column,
  cutAndEscapeText,
  nothingToShow,
  notice,
  relativeTimeHtml,
  section,
  stateBadge,
  table,
  untrustedParagraphHtml,
  untrustedTextHtml,
} from '../html/elements.ts'
import { checkbox, formHtml, hiddenField, optionLabel } from '../html/form.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'
import { type PageHead, renderPage, sendPage, versionOf } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import { SharedVersions } from '../sharedVersions.ts'
import { createLoggedSearch } from '../valueAccess.ts'
import {
  type FormFields,
  filterForm,
  pageRowsMax,
  type RecordsQuery,
  recordsPath,
  toQueryFields,
  toRecordsQuery,
} from './recordsQuery.ts'

export function addRecordsRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const versions = new SharedVersions(parts.clock)
  app.get<{ Querystring: FormFields }>(
    '/records/version',
    { config: { isPolled: true } },
    async ({ query: fields }) => {
      const query = toRecordsQuery(fields)
      return { version: await versions.get(recordsPath(query), () => readListVersion(parts, query)) }
    },
  )

  app.get<{ Querystring: FormFields }>('/records', async ({ query: fields, viewer }, reply) => {
    const query = toRecordsQuery(fields)
    // Redirects to an address without the empty fields that a form sends.
    if (hasEmpty(fields)) return reply.redirect(recordsPath(query), 303)
    const nowMs = parts.clock.nowMs()
    const read = readFilters(query, nowMs)
    const page = (main: HtmlValue, live: Pick<PageHead, 'live'> = {}) =>
      renderPage({ title: 'Records', current: '/records', viewer, ...live }, [
        filterForm(query),
        html`<div id="list" data-live>${main}</div>`,
      ])
    if (read.kind === 'invalid')
      return sendPage(reply.code(400), page(notice('bad', read.problems.map(untrustedParagraphHtml))))
    const warnings = await readSkippedRows(parts, query)
    const search = createLoggedSearch(parts, viewer)
    const filter = await narrowFilterByText(search, read, (cut) => void warnings.push(cut))
    const warning = warnings.length > 0 ? notice('attention', warnings.map(untrustedParagraphHtml)) : ''
    if (query.byCause) return sendPage(reply, page([warning, await causesHtml(parts, query, filter, nowMs)]))
    const list = await readList(parts, query, filter, rowsOf(read))
    // A search by text is logged each time, so it is not repeated.
    const path = recordsPath(query).replace('/records', '/records/version')
    const live = read.containing === null ? { live: { path, version: listVersion(list, warnings) } } : {}
    return sendPage(reply, page([warning, listHtml(list, query, viewer, nowMs)], live))
  })
}

type ReadFilters = Extract<ParsedFilters, { kind: 'value' }>

/** A key is looked for in all states. */
function readFilters({ filters }: RecordsQuery, nowMs: number): ParsedFilters {
  const anyState = filters.key === undefined ? {} : { state: states.join(',') }
  return parseListFilters({ ...anyState, ...filters }, nowMs)
}

const rowsOf = ({ limit }: ReadFilters) => Math.min(limit ?? rowsDefault, pageRowsMax)

async function readListVersion(parts: ConsoleParts, query: RecordsQuery): Promise<string> {
  const read = readFilters(query, parts.clock.nowMs())
  if (read.kind === 'invalid' || read.containing !== null || query.byCause) return ''
  const list = await readList(parts, query, read.filter, rowsOf(read))
  return listVersion(list, await readSkippedRows(parts, query))
}

const listVersion = ({ page, total }: List, warnings: readonly string[]): string =>
  versionOf([total, page.submissions.map(({ id, revision }) => [id, revision]), warnings])

const hasEmpty = (fields: FormFields) => Object.values(fields).some((value) => value === '' || Array.isArray(value))

async function readSkippedRows({ databases }: ConsoleParts, { filters, from }: RecordsQuery): Promise<string[]> {
  const isDefault = Object.keys(filters).length === 0 && from === null
  return isDefault ? skippedRowMessages(await readProblems((await databases()).ledger)) : []
}

const noneNote = nothingToShow(html`No record matches. <a href="/records">What needs attention</a>`)

const rowsDefault = 50
const countedMax = 1_000

interface List {
  page: SubmissionPage
  /** At most `countedMax` and one. */
  total: number
}

async function readList(
  { databases }: ConsoleParts,
  { order, from }: RecordsQuery,
  filter: SubmissionFilter,
  limit: number,
): Promise<List> {
  const { ledger } = await databases()
  const [page, total] = await Promise.all([
    selectSubmissionPage(ledger, filter, { order, from, limit }),
    countSubmissions(ledger, filter, countedMax + 1),
  ])
  return { page, total }
}

function listHtml({ page, total }: List, query: RecordsQuery, viewer: Viewer, nowMs: number): HtmlValue {
  const { submissions } = page
  if (submissions.length === 0) return noneNote
  const words =
    total > countedMax
      ? `More than ${countedMax} records match`
      : `${pluralize(total, 'record')} ${total === 1 ? 'matches' : 'match'}`
  const rows = [recordTable('Records', submissions, nowMs, viewer.canChange), turns(query, page)]
  // For a change of all records that match.
  const whole = toQueryFields({ ...query, from: null, byCause: false }).map(([name, value]) => hiddenField(name, value))
  const change = formHtml({ action: '/records/choose', viewer, class: 'list' }, [whole, rows, changeButtons])
  return section('listed', words, viewer.canChange ? change : rows)
}

const columns: readonly Column[] = ['Record', 'Key', 'State', 'Since', 'Code', 'Reason', 'Note', 'Type']

export function recordTable(
  ariaLabel: string,
  submissions: readonly ListedSubmission[],
  nowMs: number,
  hasCheckboxes = false,
): HtmlPart {
  const tick: Column = { words: html`<span class="unseen">Choose</span>` }
  return table(
    ariaLabel,
    hasCheckboxes ? [tick, ...columns] : columns,
    submissions.map((submission) => [
      ...(hasCheckboxes ? [tickFor(submission)] : []),
      ...recordCells(submission, nowMs),
    ]),
  )
}

const tickFor = ({ id, outboxId }: ListedSubmission) =>
  html`<input type="checkbox" name="id" value="${id}" aria-label="${cutAndEscapeText(`outbox:${outboxId}`, 44)}">`

function recordCells(submission: ListedSubmission, nowMs: number): HtmlValue[] {
  const { id, outboxId, type, key, state, code, sinceMs, error } = submission
  return [
    html`<a href="/records/${id}">${untrustedTextHtml(outboxId, 36)}</a>`,
    key === null ? '–' : untrustedTextHtml(key, 24),
    stateBadge(state),
    relativeTimeHtml(sinceMs, nowMs),
    code === null ? '–' : untrustedTextHtml(code, 16),
    error === null ? '' : untrustedTextHtml(error, 160),
    submission.mayHaveArrived ? html`<strong class="attention">${mayHaveArrivedCell(submission)}</strong>` : '',
    untrustedTextHtml(type, 24),
  ]
}

function turns(query: RecordsQuery, { next }: SubmissionPage): HtmlValue {
  const first = query.from === null ? '' : html`<a href="${recordsPath({ ...query, from: null })}">First page</a>`
  const more = next === null ? '' : html`<a href="${recordsPath({ ...query, from: next })}" rel="next">Next page</a>`
  return html`<p class="turns">${first} ${more}</p>`
}

const changeButtons = html`<details id="options"><summary>Options of a replay</summary>
<p>${checkbox('refresh', optionLabel('refresh'))}${checkbox('even-if-arrived', optionLabel('even-if-arrived'))}
${checkbox('new-key', optionLabel('new-key'))}</p></details>
<p class="buttons">
<button name="do" value="replay-ticked">Replay the ticked …</button>
<button name="do" value="discard-ticked">Discard the ticked …</button>
<button name="do" value="replay-all">Replay all that match …</button>
<button name="do" value="discard-all">Discard all that match …</button>
</p>
<p class="quiet">Each shows a preview first.</p>`

const causesOfMax = 100_000

async function causesHtml(
  { databases, searches }: ConsoleParts,
  query: RecordsQuery,
  filter: SubmissionFilter,
  nowMs: number,
): Promise<HtmlValue> {
  using _ = searches.begin('')
  const { causes, lookedAt, isCut } = await countFailureCauses((await databases()).ledger, filter, causesOfMax)
  if (causes.length === 0) return noneNote
  const pathOf = ({ cause, state }: FailureCause) =>
    recordsPath({ ...query, byCause: false, filters: { ...query.filters, state, cause } })
  const cutWords = `Only the newest ${lookedAt} records were read. Narrow the list with “In its state since”.`
  return section('causes', 'Causes, the most frequent first', [
    isCut ? notice('attention', untrustedParagraphHtml(cutWords)) : '',
    causesTable(causes, pathOf, nowMs),
    html`<p>Fix the cause before you replay: the mapping, the row, or what the service lacks.</p>`,
  ])
}

export const causesTable = (
  causes: readonly FailureCause[],
  pathOf: (cause: FailureCause) => string,
  nowMs: number,
): HtmlPart =>
  table(
    'Causes',
    ['Records', 'State', 'Reason', 'Code', 'First', 'Last', 'Type'],
    causes.map((cause) => [
      html`<a href="${pathOf(cause)}">${pluralize(cause.count, 'record')}</a>`,
      cause.mayHaveArrived
        ? html`${stateBadge(cause.state)} <strong class="attention">may have arrived</strong>`
        : stateBadge(cause.state),
      untrustedTextHtml(cause.shape, 300),
      cause.code === null ? '–' : untrustedTextHtml(cause.code, 16),
      relativeTimeHtml(cause.firstMs, nowMs),
      relativeTimeHtml(cause.lastMs, nowMs),
      untrustedTextHtml(cause.types.join(', '), 24),
    ]),
  )
