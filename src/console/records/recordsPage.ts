import type { FastifyInstance } from 'fastify'
import { countFailureCauses } from '../../ledger/operator/search.ts'
import {
  countSubmissions,
  type ListedSubmission,
  type SubmissionFilter,
  type SubmissionPage,
  selectSubmissionPage,
  selectSubmissions,
} from '../../ledger/operator/selectSubmissions.ts'
import { discardRules } from '../../operations/discard.ts'
import { narrowFilterByText } from '../../operations/filters.ts'
import { submissionCsv } from '../../operations/submissionCsv.ts'
import { addVersionRoute } from '../bounds.ts'
import { RequestRefused } from '../errors.ts'
import type { Viewer } from '../guard/installGuard.ts'
import { liveHtml, nothingToShow, notice, section } from '../html/elements.ts'
import { checkbox, formHtml, hiddenField } from '../html/form.ts'
import { type HtmlValue, html } from '../html/html.ts'
import { type PageHead, sendPage, versionOf } from '../html/layout.ts'
import { type ConsoleParts, readMappingFiles } from '../parts.ts'
import { createLoggedSearch, logValuesShown, namedMax, type UnmaskPermissions } from '../valueAccess.ts'
import { outcomeHtml, pageRowsMax, type RecentChanges } from './changePage.ts'
import { type ListValues, readListValues } from './listValues.ts'
import {
  chipsHtml,
  type FormFields,
  filterForm,
  orderOf,
  positionText,
  queryEntries,
  type ReadFilters,
  type RecordsQuery,
  readFilters,
  readPosition,
  readRecordsQuery,
  recordsPath,
  tabsHtml,
} from './recordsQuery.ts'
import { causesList, recordTable } from './recordTable.ts'

export function addRecordsRoutes(
  app: FastifyInstance,
  parts: ConsoleParts,
  { changes, shown }: { changes: RecentChanges; shown: UnmaskPermissions },
): void {
  /** What a list shows, without reading how many match: the numbers by state, which are read for all pages, tell that. */
  const listVersion = ({ submissions }: SubmissionPage, { states: listed }: SubmissionFilter): string =>
    versionOf([
      listed.map((state) => app.installation.counts?.[state]),
      submissions.map(({ id, revision }) => [id, revision]),
    ])

  /** No version for a list that is not live: a search by text is logged each time, and causes are expensive. */
  addVersionRoute(app, '/records/version', parts, async ({ query: fields }) => {
    const query = readRecordsQuery(fields)
    if (query.containing !== undefined || query['by-cause'] !== undefined) return ''
    const read = readFilters(query, changes, parts.clock.nowMs())
    return listVersion(await readPage(parts, query, read), read.filter)
  })

  app.get('/records', async ({ query: fields, viewer }, reply) => {
    const query = readRecordsQuery(fields)
    // Redirects to an address without the empty fields that a form sends.
    if (Object.values(fields as FormFields).some((value) => value === '' || Array.isArray(value)))
      return reply.redirect(recordsPath(query), 303)
    const nowMs = parts.clock.nowMs()
    const { filter, limit, cuts } = await readAsked(query, viewer)
    const tab = query.changed === undefined ? filter.states : []
    const send = (main: HtmlValue, live: Pick<PageHead, 'live'> = {}) =>
      sendPage(reply, { title: 'Records', ...live }, [
        liveHtml('tabs', tabsHtml(tab, app.installation.counts)),
        html`<div class="chips">${chipsHtml(query)}${filterForm(query)}</div>`,
        liveHtml('list', main),
      ])
    const above = [
      cuts.map((cut) => notice('attention', cut)),
      query.changed === undefined ? '' : outcomeHtml(changes.get(query.changed)),
    ]
    if (query['by-cause'] !== undefined) return send([above, await causesHtml(parts, query, filter, nowMs)])
    const { ledger } = await parts.databases()
    const [page, total] = await Promise.all([
      readPage(parts, query, { filter, limit }),
      countSubmissions(ledger, filter, countedMax + 1),
    ])
    const values = await readListValues(ledger, readMappingFiles(parts.config), page.submissions, (id) =>
      shown.isShown(viewer, id),
    )
    const live = { path: recordsPath(query, '/records/version'), version: listVersion(page, filter) }
    const main = [above, listHtml(page, total, query, viewer, { values, nowMs })]
    return send(main, query.containing === undefined ? { live } : {})
  })

  /** @returns as `cuts` why not all records were searched, if they were not */
  async function readAsked(query: RecordsQuery, viewer: Viewer) {
    const read = readFilters(query, changes, parts.clock.nowMs())
    const cuts: string[] = []
    const filter = await narrowFilterByText(createLoggedSearch(parts, viewer), read, (cut) => void cuts.push(cut))
    return { filter, limit: read.limit, cuts }
  }

  app.get('/records.csv', async ({ query: fields, viewer }, reply) => {
    const query = readRecordsQuery(fields)
    const { filter, cuts } = await readAsked(query, viewer)
    const { ledger } = await parts.databases()
    const submissions = await selectSubmissions(ledger, filter, csvRowsMax + 1, orderOf(query))
    if (submissions.length > csvRowsMax) cuts.push(tooManyForCsv)
    if (cuts.length > 0) throw new RequestRefused(400, cuts.join('\n'))
    const records = submissions.slice(0, namedMax)
    const unnamed = submissions.length - records.length
    await logValuesShown(parts, viewer, { act: 'download', records, unnamed, detail: { file: 'records.csv' } })
    reply.type('text/csv; charset=utf-8').header('content-disposition', 'attachment; filename="records.csv"')
    return reply.send(submissionCsv(submissions))
  })

  app.post('/records/show', { config: { changesNothing: true } }, async ({ query: fields, viewer }, reply) => {
    const query = readRecordsQuery(fields)
    const { submissions: records } = await readPage(parts, query, await readAsked(query, viewer))
    await logValuesShown(parts, viewer, { act: 'show', records, unnamed: 0 })
    for (const { id } of records) shown.show(viewer, id)
    return reply.redirect(recordsPath(query), 303)
  })
}

const noneNote = (query: RecordsQuery) =>
  queryEntries(query).length > 0
    ? nothingToShow(html`No record matches. <a href="/records">What needs attention</a>`)
    : nothingToShow('No record needs attention.')

/** So that a page is smaller than 40 kB. */
const rowsDefault = 40
const countedMax = 1_000
const csvRowsMax = 10_000
const tooManyForCsv = `More than ${csvRowsMax.toLocaleString('en')} records match. Narrow the filters, or take \`outboxd list --csv\``

async function readPage(
  { databases }: ConsoleParts,
  query: RecordsQuery,
  { filter, limit }: Pick<ReadFilters, 'filter' | 'limit'>,
): Promise<SubmissionPage> {
  return selectSubmissionPage((await databases()).ledger, filter, {
    order: orderOf(query),
    from: readPosition(query),
    limit: Math.min(limit ?? rowsDefault, pageRowsMax),
  })
}

/** @param total how many match: at most `countedMax` and one */
function listHtml(
  { submissions, next }: SubmissionPage,
  total: number,
  query: RecordsQuery,
  viewer: Viewer,
  { values, nowMs }: { values: ListValues; nowMs: number },
): HtmlValue {
  const { changed, after } = query
  if (submissions.length === 0) return changed === undefined ? html`<section>${noneNote(query)}</section>` : ''
  const isChangeable = ({ state }: ListedSubmission) => discardRules.allowedStates.includes(state)
  const canAct = viewer.canChange && changed === undefined && submissions.some(isChangeable)
  const count = total > countedMax ? `more than ${countedMax.toLocaleString('en')}` : String(total)
  const whole = { ...query, after: undefined, 'by-cause': undefined }
  const bar = html`<div class="bar">
${canAct ? changeControls(count) : ''}<span class="quiet">${submissions.length} of ${count} shown</span>
<span class="right">${isCausesUseful(query) ? html`<a class="button" href="${recordsPath({ ...whole, 'by-cause': 'on' })}">By cause</a>` : ''}
<a class="button" href="${recordsPath(whole, '/records.csv')}" download title="At most ${csvRowsMax.toLocaleString('en')} records, without values">CSV</a>
${values.isMasked ? html`<button formaction="${recordsPath(query, '/records/show')}" data-key="v" title="The log notes it">Show values</button>` : ''}</span></div>`
  const first = after === undefined ? '' : html`<a href="${recordsPath({ ...query, after: undefined })}">First page</a>`
  const more =
    next === null
      ? ''
      : html`<a href="${recordsPath({ ...query, after: positionText(next) })}" rel="next">Next page</a>`
  return html`<section>${formHtml({ action: '/records/choose', viewer, class: 'list', changes: false }, [
    // For a change of all records that match.
    queryEntries(whole).map(([name, value]) => hiddenField(name, value)),
    bar,
    recordTable('Records', submissions, nowMs, { query, values, hasTicks: canAct }),
    first || more ? html`<p class="turns">${first} ${more}</p>` : '',
  ])}</section>`
}

const isCausesUseful = ({ cause, changed, state }: RecordsQuery) =>
  changed === undefined && cause === undefined && !/completed|queued|sending|accepted/.test(state ?? '')

const changeControls = (count: string) => html`${checkbox('all', html`<span>Select all ${count}</span>`)}
<button name="do" value="replay" class="main" data-key="r">Replay…</button>
<button name="do" value="discard" data-key="d">Discard…</button>
<span id="ticked" class="quiet"></span>`

const causesOfMax = 100_000

async function causesHtml(
  { databases, searches }: ConsoleParts,
  query: RecordsQuery,
  filter: SubmissionFilter,
  nowMs: number,
): Promise<HtmlValue> {
  using _ = searches.begin()
  const { causes, lookedAt, isCut } = await countFailureCauses((await databases()).ledger, filter, causesOfMax)
  if (causes.length === 0) return html`<section>${noneNote(query)}</section>`
  const cutWords = `Only the newest ${lookedAt} records were read. Narrow the list with “In its state since”.`
  const inLines = { ...query, 'by-cause': undefined }
  return [
    isCut ? notice('attention', cutWords) : '',
    section(
      'causes',
      html`By cause <a class="button" href="${recordsPath(inLines)}">One line per record</a>`,
      causesList(causes, inLines, nowMs),
    ),
    html`<p class="quiet">Fix the cause before you replay: the mapping, the row, or what the service lacks.</p>`,
  ]
}
