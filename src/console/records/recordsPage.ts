import type { FastifyInstance } from 'fastify'
import { countFailureCauses, type FailureCause } from '../../ledger/operator/search.ts'
import {
  countSubmissions,
  type SubmissionFilter,
  type SubmissionPage,
  selectSubmissionPage,
} from '../../ledger/operator/selectSubmissions.ts'
import { readProblems } from '../../ledger/problems.ts'
import { states } from '../../model/submission.ts'
import { discardRules } from '../../operations/discard.ts'
import { narrowFilterByText, type ParsedFilters, parseListFilters } from '../../operations/filters.ts'
import { skippedRowMessages } from '../../operations/problemMessages.ts'
import { pluralize } from '../../plainText.ts'
import { createVersionReader } from '../bounds.ts'
import { RequestRefused } from '../errors.ts'
import type { Viewer } from '../guard/viewer.ts'
import { liveHtml, nothingToShow, notice, section, untrustedParagraphHtml } from '../html/elements.ts'
import { checkbox, formHtml, hiddenField } from '../html/form.ts'
import { type HtmlValue, html } from '../html/html.ts'
import { type PageHead, renderPage, sendPage, versionOf } from '../html/layout.ts'
import { type ConsoleParts, readMappingFiles, shareRecentRead } from '../parts.ts'
import { createLoggedSearch, logValuesShown, type UnmaskPermissions } from '../valueAccess.ts'
import { outcomeHtml } from './changePage.ts'
import { type ListValues, readListValues } from './listValues.ts'
import type { RecentChanges } from './recentChanges.ts'
import {
  chipsHtml,
  type FormFields,
  filterForm,
  pageRowsMax,
  type RecordsQuery,
  recordsPath,
  tabsHtml,
  toQueryFields,
  toRecordsQuery,
} from './recordsQuery.ts'
import { causesList, recordTable } from './recordTable.ts'

const filesAgeMs = 5_000

export function addRecordsRoutes(
  app: FastifyInstance,
  parts: ConsoleParts,
  { changes, shown }: { changes: RecentChanges; shown: UnmaskPermissions },
): void {
  const readSharedVersion = createVersionReader(parts.clock)
  const readFiles = shareRecentRead(parts.clock, filesAgeMs, async () => readMappingFiles(parts.config))
  /** '' for a list that is not live: a search by text is logged each time, and causes are expensive. */
  const readVersion = async (query: RecordsQuery) => {
    const read = readFilters(query, changes, parts.clock.nowMs())
    if (read.kind === 'invalid' || read.containing !== null || query.byCause) return ''
    return listVersion(await readList(parts, query, read.filter, read.limit), await readSkippedRows(parts, query))
  }

  app.get<{ Querystring: FormFields }>(
    '/records/version',
    { config: { isPolled: true } },
    async ({ query: fields }) => {
      const query = toRecordsQuery(fields)
      return { version: await readSharedVersion(recordsPath(query), () => readVersion(query)) }
    },
  )

  app.get<{ Querystring: FormFields }>('/records', async ({ query: fields, viewer }, reply) => {
    const query = toRecordsQuery(fields)
    // Redirects to an address without the empty fields that a form sends.
    if (hasEmpty(fields)) return reply.redirect(recordsPath(query), 303)
    const nowMs = parts.clock.nowMs()
    const read = readFilters(query, changes, nowMs)
    const page = (main: HtmlValue, live: Pick<PageHead, 'live'> = {}) =>
      renderPage({ title: 'Records', current: '/records', viewer, ...live }, [
        liveHtml('tabs', tabsHtml(query, app.installation.counts)),
        html`<div class="chips">${chipsHtml(query)}${filterForm(query)}</div>`,
        liveHtml('list', main),
      ])
    if (read.kind === 'invalid')
      return sendPage(reply.code(400), page(notice('bad', read.problems.map(untrustedParagraphHtml))))
    const { ledger } = await parts.databases()
    const warnings = await readSkippedRows(parts, query)
    const search = createLoggedSearch(parts, viewer)
    const filter = await narrowFilterByText(search, read, (cut) => void warnings.push(cut))
    const above = [
      warnings.length > 0 ? notice('attention', warnings.map(untrustedParagraphHtml)) : '',
      query.changed === null ? '' : outcomeHtml(changes.get(query.changed)),
    ]
    if (query.byCause) return sendPage(reply, page([above, await causesHtml(parts, query, filter, nowMs)]))
    const list = await readList(parts, query, filter, read.limit)
    const isShown = (id: string) => shown.isShown(viewer, id)
    const values = await readListValues(ledger, await readFiles(), list.page.submissions, isShown)
    const path = recordsPath(query, '/records/version')
    const live = read.containing === null ? { live: { path, version: listVersion(list, warnings) } } : {}
    return sendPage(reply, page([above, listHtml(list, query, viewer, { values, isShown, nowMs })], live))
  })

  app.post<{ Querystring: FormFields }>(
    '/records/show',
    { config: { changesNothing: true } },
    async ({ query: fields, viewer }, reply) => {
      const query = toRecordsQuery(fields)
      const read = readFilters(query, changes, parts.clock.nowMs())
      if (read.kind === 'invalid') throw new RequestRefused(400, read.problems.join('\n'))
      const filter = await narrowFilterByText(createLoggedSearch(parts, viewer), read, () => {})
      const { submissions: records } = (await readList(parts, query, filter, read.limit)).page
      await logValuesShown(parts, viewer, { act: 'show', records, unnamed: 0 })
      for (const { id } of records) shown.show(viewer, id)
      return reply.redirect(recordsPath(query), 303)
    },
  )
}

type ReadFilters = Omit<Extract<ParsedFilters, { kind: 'value' }>, 'limit'> & { limit: number }

/** A key, and the records of a change, are looked for in all states. */
function readFilters(
  { filters, changed }: RecordsQuery,
  changes: RecentChanges,
  nowMs: number,
): ReadFilters | Extract<ParsedFilters, { kind: 'invalid' }> {
  const anyState = filters.key === undefined && changed === null ? {} : { state: states.join(',') }
  const read = parseListFilters({ ...anyState, ...filters }, nowMs)
  if (read.kind === 'invalid') return read
  const among = changed === null ? null : changes.get(changed).done
  return { ...read, filter: { ...read.filter, among }, limit: Math.min(read.limit ?? rowsDefault, pageRowsMax) }
}

const listVersion = ({ page, total }: List, warnings: readonly string[]): string =>
  versionOf([total, page.submissions.map(({ id, revision }) => [id, revision]), warnings])

const hasEmpty = (fields: FormFields) => Object.values(fields).some((value) => value === '' || Array.isArray(value))

async function readSkippedRows({ databases }: ConsoleParts, query: RecordsQuery): Promise<string[]> {
  const isDefault = recordsPath({ ...query, order: 'longest', byCause: false }) === '/records'
  return isDefault ? skippedRowMessages(await readProblems((await databases()).ledger)) : []
}

const noneNote = (query: RecordsQuery) =>
  recordsPath(query).includes('=')
    ? nothingToShow(html`No record matches. <a href="/records">What needs attention</a>`)
    : nothingToShow('No record needs attention.')

/** So that a page is smaller than 40 kB. */
const rowsDefault = 40
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

interface Shown {
  values: ListValues
  isShown: (id: string) => boolean
  nowMs: number
}

function listHtml({ page, total }: List, query: RecordsQuery, viewer: Viewer, shown: Shown): HtmlValue {
  const { submissions } = page
  if (submissions.length === 0) return query.changed === null ? html`<section>${noneNote(query)}</section>` : ''
  const canAct =
    viewer.canChange &&
    query.changed === null &&
    submissions.some(({ state }) => discardRules.allowedStates.includes(state))
  const isMasked = shown.values.columns.length > 0 && !submissions.every(({ id }) => shown.isShown(id))
  const count = total > countedMax ? `more than ${countedMax.toLocaleString('en')}` : String(total)
  const bar = html`<div class="bar">
${canAct ? changeControls(count) : html`<span>${pluralize(submissions.length, 'record')} of ${count}</span>`}
<span class="right">${isCausesUseful(query) ? html`<a class="button" href="${recordsPath({ ...query, from: null, byCause: true })}">By cause</a>` : ''}
${isMasked ? html`<button formaction="${recordsPath(query, '/records/show')}" data-key="v" title="The log notes it">Show values</button>` : ''}</span></div>`
  // For a change of all records that match.
  const whole = toQueryFields({ ...query, from: null, byCause: false }).map(([name, value]) => hiddenField(name, value))
  const rows = [
    bar,
    recordTable('Records', submissions, shown.nowMs, { values: shown.values, hasTicks: canAct }),
    turns(query, page),
  ]
  const form = { action: '/records/choose', viewer, class: 'list', isDialog: true, changes: false }
  return html`<section>${formHtml(form, [whole, rows])}</section>`
}

const isCausesUseful = ({ filters, changed }: RecordsQuery) =>
  changed === null && filters.cause === undefined && !/completed|queued|sending|accepted/.test(filters.state ?? '')

const changeControls = (count: string) => html`${checkbox('all', html`<span>Select all ${count}</span>`)}
<button name="do" value="replay" class="main" data-key="r">Replay…</button>
<button name="do" value="discard" data-key="d">Discard…</button>
<span id="ticked" class="quiet"></span>`

function turns(query: RecordsQuery, { next }: SubmissionPage): HtmlValue {
  if (query.from === null && next === null) return ''
  const first = query.from === null ? '' : html`<a href="${recordsPath({ ...query, from: null })}">First page</a>`
  const more = next === null ? '' : html`<a href="${recordsPath({ ...query, from: next })}" rel="next">Next page</a>`
  return html`<p class="turns">${first} ${more}</p>`
}

const causesOfMax = 100_000

async function causesHtml(
  { databases, searches }: ConsoleParts,
  query: RecordsQuery,
  filter: SubmissionFilter,
  nowMs: number,
): Promise<HtmlValue> {
  using _ = searches.begin('')
  const { causes, lookedAt, isCut } = await countFailureCauses((await databases()).ledger, filter, causesOfMax)
  if (causes.length === 0) return html`<section>${noneNote(query)}</section>`
  const pathOf = ({ cause, state }: FailureCause) =>
    recordsPath({ ...query, byCause: false, filters: { ...query.filters, state, cause } })
  const cutWords = `Only the newest ${lookedAt} records were read. Narrow the list with “In its state since”.`
  return [
    isCut ? notice('attention', untrustedParagraphHtml(cutWords)) : '',
    section(
      'causes',
      html`By cause <a class="button" href="${recordsPath({ ...query, byCause: false })}">One line per record</a>`,
      causesList(causes, pathOf, nowMs),
    ),
    html`<p class="quiet">Fix the cause before you replay: the mapping, the row, or what the service lacks.</p>`,
  ]
}
