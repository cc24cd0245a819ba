import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  type LoggedEvent,
  readSubmissionDetail,
  readSubmissionVersion,
  type SubmissionDetail,
} from '../../ledger/operator/readSubmissionDetail.ts'
import { selectSubmissionIds } from '../../ledger/operator/selectSubmissions.ts'
import { type State, statesNeedingAttention } from '../../model/submission.ts'
import type { Databases } from '../../operations/databases.ts'
import { type Explanation, explainSubmission } from '../../operations/explainSubmission.ts'
import { explainMissingRecord, searchRecords } from '../../operations/references.ts'
import {
  type CurrentRow,
  eventDetails,
  eventText,
  rowConflictLines,
  type SubmissionDetailValue,
  submissionDetailRows,
  tryReadCurrentRow,
} from '../../operations/submissionFacts.ts'
import { capitalize, escapeControl } from '../../plainText.ts'
import { formatDuration } from '../../time.ts'
import { addVersionRoute } from '../bounds.ts'
import { RequestRefused } from '../errors.ts'
import {
  cutAndEscapeText,
  descriptionListHtml,
  icon,
  instantHtml,
  liveHtml,
  notice,
  relativeTimeHtml,
  section,
  stateBadge,
  type Tone,
  untrustedTextHtml,
} from '../html/elements.ts'
import { trimmedFieldText } from '../html/form.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'
import { sendPage } from '../html/layout.ts'
import { type ConsoleParts, readMappingFiles } from '../parts.ts'
import type { RecentChanges } from '../records/changePage.ts'
import { orderOf, queryEntries, readFilters, readRecordsQuery, recordPath } from '../records/recordsQuery.ts'
import { recordTable } from '../records/recordTable.ts'
import { logValuesShown, type UnmaskPermissions } from '../valueAccess.ts'
import { actionsHtml } from './resolvePage.ts'
import { maskText, valuesSection } from './valuesHtml.ts'

const listedMax = 50
/** A record further down in its list has no place. */
const placesMax = 1_000
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

type RecordRequest = FastifyRequest<{ Params: { id: string } }>

export function addRecordRoutes(
  app: FastifyInstance,
  parts: ConsoleParts,
  { changes, shown }: { changes: RecentChanges; shown: UnmaskPermissions },
): void {
  const { databases, clock } = parts

  const readVersion = async (id: string) => (uuid.test(id) ? readSubmissionVersion((await databases()).ledger, id) : '')

  addVersionRoute(app, '/records/:id/version', parts, ({ params }) => readVersion((params as { id: string }).id))

  app.get('/find', async ({ query }, reply) => {
    const word = trimmedFieldText(query, 'word')
    return word === undefined ? reply.redirect('/records', 303) : sendFound(word, reply)
  })

  app.get('/records/:id', async ({ params }: RecordRequest, reply) => sendFound(params.id, reply))

  /** Says which of its list this record is, with links to its neighbours. Without a list: of those that need attention. */
  async function placeHtml({ id, state }: SubmissionDetail, fields: unknown): Promise<HtmlValue> {
    const given = readRecordsQuery(fields)
    const query = given.changed === undefined || changes.has(given.changed) ? given : {}
    const isOfList = queryEntries(query).length > 0
    if (!isOfList && !statesNeedingAttention.some((each) => each === state)) return ''
    const { filter } = readFilters(query, changes, clock.nowMs())
    const ids = await selectSubmissionIds((await databases()).ledger, filter, placesMax, orderOf(query))
    const here = ids.indexOf(id)
    const link = (to: string | undefined, key: string, words: string) =>
      to && html` · <a href="${recordPath(to, query)}" data-key="${key}">${words}</a>`
    const all = `${ids.length}${ids.length === placesMax ? ' or more' : ''}`
    const which = isOfList ? 'in the list' : 'that need attention'
    return html` · ${here < 0 ? '' : `${here + 1} of `}${all} ${which}${link(ids[here - 1], '[', 'Previous')}${link(ids[here + 1], ']', 'Next')}`
  }

  /** Sends the page of the record that `word` names, the list of several, or why there is none. */
  async function sendFound(word: string, reply: FastifyReply): Promise<FastifyReply> {
    const { viewer, url, query } = reply.request
    const opened = await databases()
    const found = (await searchRecords(opened.ledger, word, listedMax + 1)) ?? []
    const [submission] = found
    if (found.length > 1) {
      const more = found.length > listedMax ? ', and there are more' : ''
      return sendPage(reply, { title: 'Several records match' }, [
        html`<p>These match ${untrustedTextHtml(word, 100)}${more}. Choose one.</p>`,
        html`<section>${recordTable('Records', found.slice(0, listedMax), clock.nowMs())}</section>`,
      ])
    }
    const isItsPage = url.startsWith(`/records/${submission?.id}`)
    if (submission !== undefined && !isItsPage) return reply.redirect(`/records/${submission.id}`, 303)
    // Before the record, so that a step in between makes a new version.
    const version = submission === undefined ? '' : await readVersion(submission.id)
    const detail = submission === undefined ? null : await readSubmissionDetail(opened.ledger, submission.id)
    if (submission === undefined || detail === null)
      return sendMissing(reply, word, await explainMissingRecord(opened, word))
    const row = detail.conflict === null ? null : await tryReadCurrentRow(opened, detail.outboxId)
    const areValuesShown = shown.isShown(viewer, detail.id)
    const actions = actionsHtml(detail, submission.revision, viewer)
    const heading = recordHeading(detail, await placeHtml(detail, query), actions)
    const live = { path: `/records/${detail.id}/version`, version }
    return sendPage(reply, { title: recordName(detail), heading, live }, [
      recordHtml(detail, row, areValuesShown),
      valuesSection(detail, readMappingFiles(opened.config), viewer, { areValuesShown, search: searchOf(url) }),
    ])
  }

  app.post('/records/:id/show', { config: { changesNothing: true } }, async (request: RecordRequest, reply) => {
    const { viewer } = request
    const detail = await detailOf(await databases(), request.params.id)
    await logValuesShown(parts, viewer, { act: 'show', records: [detail], unnamed: 0 })
    shown.show(viewer, detail.id)
    return reply.redirect(`/records/${detail.id}${searchOf(request.url)}#values-head`, 303)
  })

  app.post('/records/:id/hide', { config: { changesNothing: true } }, async (request: RecordRequest, reply) => {
    const { viewer, params, url } = request
    shown.hide(viewer, params.id)
    return reply.redirect(`/records/${encodeURIComponent(params.id)}${searchOf(url)}#values-head`, 303)
  })
}

/** Of the list that the record was opened from. */
const searchOf = (url: string) => /\?.*/.exec(url)?.[0] ?? ''

async function detailOf(databases: Databases, id: string): Promise<SubmissionDetail> {
  const detail = uuid.test(id) ? await readSubmissionDetail(databases.ledger, id) : null
  if (detail === null) throw new RequestRefused(404, 'There is no such record.')
  return detail
}

function sendMissing(reply: FastifyReply, word: string, message: string): FastifyReply {
  const text = encodeURIComponent(word.replace(/^(outbox|transaction|key):/, ''))
  const mapping = html`<p><a href="/mapping?outbox=${text}">Mapping</a>: the request that the row would become</p>`
  return sendPage(reply.code(404), { title: 'No such record' }, [
    notice('attention', `${capitalize(message)}.`),
    word.startsWith('outbox:') ? mapping : '',
    html`<p><a href="/records?containing=${text}">Search the values of all records</a>; the search is logged</p>`,
    html`<p><a href="/records">Records</a></p>`,
  ])
}

const nameMaxChars = 60

const recordName = ({ key, outboxId }: SubmissionDetail): string =>
  cutAndEscapeText(key ?? `row ${outboxId}`, nameMaxChars)

function recordHeading(detail: SubmissionDetail, place: HtmlValue, actions: HtmlValue): HtmlPart {
  const { key, outboxId, type, state } = detail
  return html`<div class="head" id="head" data-live><h1><bdi>${recordName(detail)}</bdi> ${stateBadge(state)}</h1>
<p class="quiet">${key === null ? '' : html`row ${untrustedTextHtml(outboxId, 60)}, `}${untrustedTextHtml(type, 40)}${place}</p>
${actions}</div>`
}

/** @param row the present row of the outbox, if the record is in conflict with it */
function recordHtml(detail: SubmissionDetail, row: CurrentRow | null, areValuesShown: boolean): HtmlValue {
  const explanation = explainSubmission(detail)
  return [
    liveHtml('stands', standing(detail, explanation, row)),
    html`<div class="wide">
${section('steps', 'What happened', liveHtml('steps', timeline(detail, areValuesShown)))}
${section('facts', 'Facts', liveHtml('facts', facts(detail, explanation)))}</div>`,
  ]
}

const tones: Record<State, Tone> = {
  queued: 'quiet',
  sending: 'quiet',
  accepted: 'quiet',
  completed: 'good',
  failed: 'bad',
  rejected: 'bad',
  uncertain: 'attention',
  discarded: 'quiet',
}

function standing(detail: SubmissionDetail, { why, advice }: Explanation, row: CurrentRow | null): HtmlValue {
  const next = advice.map(({ words, ways }) => {
    const text = ways.length > 0 ? `${words.replace(/, then$/, '')}. Choose above.` : words
    return html`<p>${escapeControl(sentence(text))}</p>`
  })
  return [
    notice(tones[detail.state], [
      html`<p><bdi>${escapeControl(sentence(why))}</bdi></p>`,
      next,
      detail.blocker !== null ? blockerLink(detail.blocker) : '',
    ]),
    detail.conflict === null ? '' : notice('bad', rowConflictLines(detail, row).join('\n')),
  ]
}

/** Leaves the name of a field at the beginning as it is. */
const sentence = (words: string) =>
  `${/^[a-z]+[ ,:]/.test(words) ? capitalize(words) : words}${/[.!?]$/.test(words) ? '' : '.'}`

const blockerLink = ({ outboxId }: { outboxId: string }) =>
  html`<p><a href="/records/${encodeURIComponent(`outbox:${outboxId}`)}">outbox:${untrustedTextHtml(outboxId, 60)}</a></p>`

/** Without those that the page says above. */
function facts(detail: SubmissionDetail, { why }: Explanation): HtmlPart {
  const above: Partial<Record<string, SubmissionDetailValue | null>> = {
    ...{ 'outbox row': detail.outboxId, type: detail.type, error: why },
    key: detail.key === cutAndEscapeText(detail.key ?? '', nameMaxChars) ? detail.key : null,
  }
  const rest = submissionDetailRows(detail).filter(([name, fact]) => above[name] !== fact)
  return descriptionListHtml(rest.map(([name, fact]) => [capitalize(name), factHtml(fact, detail.nowMs)]))
}

function factHtml(fact: SubmissionDetailValue, nowMs: number): HtmlValue {
  if (typeof fact !== 'string') return html`${instantHtml(fact.atMs)} (${relativeTimeHtml(fact.atMs, nowMs)})`
  const isId = /^\S{12,}$/.test(fact)
  return isId ? html`<span data-copy>${untrustedTextHtml(fact, 2_000)}</span>` : untrustedTextHtml(fact, 2_000)
}

const timeline = ({ events }: SubmissionDetail, isShown: boolean) =>
  html`<ol class="steps">${events.map((event, i) => step(event, events[i - 1] ?? null, isShown))}</ol>`

function step(event: LoggedEvent, former: LoggedEvent | null, isShown: boolean): HtmlValue {
  const { atMs, from, to, attempt, who } = event
  const states = from === null || from === to ? to : `${from} → ${to}`
  const after = former === null ? '' : html` <span class="after">+${distance(atMs - former.atMs)}</span>`
  const words = eventText(event)
  const details = eventDetails(event).map(({ name, value, isOfRecord }): [string, HtmlValue] => [
    name,
    isShown || !isOfRecord ? untrustedTextHtml(value, 2_000) : maskText,
  ])
  return html`<li><span class="state ${to}">${icon(to)}</span><div><p><strong>${words === '' ? states : untrustedTextHtml(capitalize(words), 500)}</strong>
<span class="quiet">${words === '' ? '' : `${states}, `}attempt ${attempt}, ${untrustedTextHtml(who, 100)}</span></p>
${details.length > 0 ? descriptionListHtml(details) : ''}</div><p class="quiet">${instantHtml(atMs)}${after}</p></li>\n`
}

const distance = (ms: number) => (ms < 1_000 ? `${Math.round(ms)} ms` : formatDuration(ms))
