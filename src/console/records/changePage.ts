import type { FastifyInstance } from 'fastify'
import { findSubmissions, type ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import { findReasonProblemClause } from '../../operations/actor.ts'
import {
  type BulkChangeRules,
  chooseSubmissions,
  groupSubmissionsByKind,
  listSkippedAsChanged,
  previewedRecordsMax,
  type RecordChoice,
  readReplayCostMessage,
  type SkippedRecord,
} from '../../operations/bulkChange.ts'
import { createOperator } from '../../operations/databases.ts'
import { discardRules, discardSubmissions } from '../../operations/discard.ts'
import { explainError } from '../../operations/explainError.ts'
import { loadLedgerMappings } from '../../operations/ledgerFiles.ts'
import { submissionIdPattern } from '../../operations/references.ts'
import { type ReplayTerms, replayRules, replaySubmissions } from '../../operations/replay.ts'
import { mayHaveArrivedCell } from '../../operations/submissionFacts.ts'
import { pluralize } from '../../plainText.ts'
import { RequestRefused } from '../errors.ts'
import type { Viewer } from '../guard/viewer.ts'
import { notice, section, table, untrustedParagraphHtml, untrustedTextHtml } from '../html/elements.ts'
import { formHtml, hiddenField, optionalHiddenField, trimmedFieldText } from '../html/form.ts'
import { type HtmlValue, html } from '../html/html.ts'
import { renderPage, sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import { createLoggedSearch } from '../valueAccess.ts'
import { recordTable } from './recordsPage.ts'
import { type FormFields, pageRowsMax, toRecordsQuery } from './recordsQuery.ts'

/** The preview is a form with the id and revision of each record shown, so that no other record is changed. */
export function addBulkChangeRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const stopping = new AbortController()
  const running = new Set<Promise<unknown>>()
  app.addHook('preClose', async () => stopping.abort())
  app.addHook('onClose', async () => void (await Promise.allSettled(running)))

  app.post<{ Body: FormFields }>('/records/choose', async ({ body, viewer }, reply) => {
    const page = await renderPreview(parts, viewer, body, readChoice(body))
    return sendPage(reply, renderPage({ title: `Preview: ${verbOf(body)}`, current: '/records', viewer }, page))
  })

  app.post<{ Body: FormFields }>('/records/change', async ({ body, viewer }, reply) => {
    const reason = trimmedFieldText(body, 'reason') ?? null
    const wrong = reason === null && verbOf(body) === 'replay' ? null : findReasonProblemClause(reason ?? '')
    if (wrong !== null) throw new RequestRefused(400, `The reason ${wrong}: nothing was changed.`)
    const work = carryOut(parts, body, { who: viewer.who, reason }, stopping.signal)
    running.add(work)
    const page = await work.finally(() => running.delete(work))
    return sendPage(reply, renderPage({ title: `Done: ${verbOf(body)}`, current: '/records', viewer }, page))
  })
}

const carriedFields = ['do', 'refresh', 'even-if-arrived', 'new-key'] as const

/** Bounds the form and the time of a preview. */
const changedMax = 2_000

const termsOf = (fields: FormFields): ReplayTerms => ({
  refresh: fields.refresh !== undefined,
  discarded: false,
  evenIfArrived: fields['even-if-arrived'] !== undefined,
  newKey: fields['new-key'] !== undefined,
})

function doingOf(fields: FormFields): { verb: BulkChangeRules['verb']; isTicked: boolean } {
  const [, verb, scope] = /^(replay|discard)-(ticked|all)$/.exec(trimmedFieldText(fields, 'do') ?? '') ?? []
  if (verb !== 'replay' && verb !== 'discard') throw new RequestRefused(400, 'The form does not say what to do.')
  return { verb, isTicked: scope === 'ticked' }
}

const verbOf = (fields: FormFields) => doingOf(fields).verb
const rulesOf = (fields: FormFields) => (verbOf(fields) === 'replay' ? replayRules(termsOf(fields)) : discardRules)

function readChoice(fields: FormFields): Pick<RecordChoice, 'ids' | 'filters'> {
  // The form's limit is the length of a page, so it is not used.
  if (!doingOf(fields).isTicked)
    return { ids: [], filters: { ...toRecordsQuery(fields).filters, limit: String(changedMax) } }
  const ids = [...new Set([fields.id ?? []].flat())]
  if (ids.length === 0) throw new RequestRefused(400, 'No record is ticked. Tick some, or choose all that match.')
  if (ids.length > pageRowsMax || !ids.every((id) => submissionIdPattern.test(id)))
    throw new RequestRefused(
      400,
      `The form takes at most ${pageRowsMax} ticked records by id. Choose all that match instead.`,
    )
  return { ids, filters: {} }
}

async function renderPreview(
  parts: ConsoleParts,
  viewer: Viewer,
  fields: FormFields,
  choice: Pick<RecordChoice, 'ids' | 'filters'>,
): Promise<HtmlValue> {
  const databases = await parts.databases()
  const rules = rulesOf(fields)
  const warnings: string[] = []
  const asked = { ...choice, nowMs: parts.clock.nowMs() }
  const search = createLoggedSearch(parts, viewer)
  const chosen = await chooseSubmissions(databases.ledger, search, rules, asked, (cut) => void warnings.push(cut))
  if (chosen.kind !== 'chosen') throw new RequestRefused(400, chosen.problems.join('\n'))
  if (chosen.submissions.length === changedMax)
    warnings.push(`The console changes at most ${changedMax} records at once. Repeat it for the rest.`)
  let { submissions, skipped } = chosen
  let cost = ''
  if (rules.verb === 'replay') {
    const trial = { databases, mappings: await loadLedgerMappings(databases), operator: null }
    const tried = await replaySubmissions(trial, submissions, termsOf(fields), { signal: new AbortController().signal })
    if (tried.failure !== undefined) throw tried.failure
    const mapped = new Set(tried.done)
    submissions = submissions.filter(({ id }) => mapped.has(id))
    skipped = [...skipped, ...tried.skipped]
    cost = await readReplayCostMessage(databases, submissions.length)
  }
  const { verb } = rules
  const count = submissions.length
  const seen = submissions.map(({ id, revision }) => `${id}.${revision}`).join(' ')
  return [
    section('would', `This would ${verb} ${pluralize(count, 'record')}`, [
      [...warnings, rules.riskOf(submissions)]
        .filter(Boolean)
        .map((words) => notice('attention', untrustedParagraphHtml(words))),
      count === 0 ? '' : chosenRecords(submissions, cost, asked.nowMs),
      skipped.length === 0 ? '' : skippedList(skipped, 'would be skipped'),
    ]),
    count === 0
      ? notice('quiet', html`<p>There is nothing to ${verb}.</p>`)
      : confirmation(rules, count, viewer, [
          carriedFields.map((name) => optionalHiddenField(fields, name)),
          hiddenField('seen', seen),
        ]),
    html`<p><a href="/records">Cancel: change nothing</a></p>`,
  ]
}

const chosenRecords = (submissions: readonly ListedSubmission[], cost: string, nowMs: number): HtmlValue => [
  cost === '' ? '' : html`<p>${cost}</p>`,
  table(
    'How many of each kind',
    [{ number: 'Records' }, 'State', 'Type', 'Code', 'Note'],
    groupSubmissionsByKind(submissions).map((group) => [
      group.count,
      group.state,
      untrustedTextHtml(group.type, 24),
      group.code === null ? '–' : untrustedTextHtml(group.code, 16),
      group.mayHaveArrived ? html`<strong class="attention">${mayHaveArrivedCell(group)}</strong>` : '',
    ]),
  ),
  html`<h3>${submissions.length > previewedRecordsMax ? `The first ${previewedRecordsMax} of ${submissions.length}` : 'All of them'}</h3>`,
  recordTable('The first records', submissions.slice(0, previewedRecordsMax), nowMs),
]

function confirmation({ verb }: BulkChangeRules, count: number, viewer: Viewer, hidden: HtmlValue): HtmlValue {
  const isDiscard = verb === 'discard'
  const words = `${isDiscard ? 'Discard' : 'Replay'} ${pluralize(count, 'record')}`
  const reason = html`<label class="wide">Reason${isDiscard ? ', kept with each record' : ', if there is one'}
<input name="reason" maxlength="1000"${isDiscard ? html` required` : ''}></label>`
  const button = html`<button class="${isDiscard ? 'grave' : 'main'}">${words}</button>`
  return section('confirm', `${words}?`, [
    html`<p class="quiet">This changes the records as shown here. A record that changes before you confirm is skipped and named.</p>`,
    formHtml({ action: '/records/change', viewer }, [hidden, reason, button]),
  ])
}

async function carryOut(
  parts: ConsoleParts,
  fields: FormFields,
  actor: { who: string; reason: string | null },
  signal: AbortSignal,
): Promise<HtmlValue> {
  const rules = rulesOf(fields)
  const seen = readSeen(trimmedFieldText(fields, 'seen') ?? '')
  const databases = await parts.databases()
  const operator = createOperator(databases, actor)
  const found = await findSubmissions(databases.ledger, { kind: 'ids', ids: [...seen.keys()] }, seen.size)
  const asSeen = found.filter(
    ({ id, revision, state }) => seen.get(id) === revision && rules.allowedStates.includes(state),
  )
  const replayParts = async () => ({ databases, operator, mappings: await loadLedgerMappings(databases) })
  const { done, skipped, failure } =
    rules.verb === 'discard'
      ? await discardSubmissions(operator, asSeen, { signal })
      : await replaySubmissions(await replayParts(), asSeen, termsOf(fields), { signal })
  const all = [...listSkippedAsChanged(found, new Set(asSeen.map(({ id }) => id))), ...skipped]
  const rest = seen.size - done.length - all.length
  return [
    failure === undefined ? '' : notice('bad', html`<p>${explainError(failure).message}</p>`),
    notice(all.length + rest > 0 ? 'attention' : 'good', html`<p>${courseMessage(rules, done.length, all.length)}</p>`),
    rest > 0
      ? notice(
          'attention',
          html`<p>${pluralize(rest, 'record')} not changed, because an error or the console's end prevented it, or the record was deleted.</p>`,
        )
      : '',
    all.length > 0 ? html`<section>${skippedList(all, 'skipped')}</section>` : '',
    html`<p><a href="/records">Records</a></p>`,
  ]
}

const courseMessage = ({ verb }: BulkChangeRules, done: number, skipped: number) =>
  `${verb === 'discard' ? 'Discarded' : 'Replayed'} ${pluralize(done, 'record')}${skipped > 0 ? `; ${pluralize(skipped, 'record')} skipped` : ''}.`

/** By id, the revision that the preview showed. */
function readSeen(text: string): Map<string, number> {
  const seen = text.split(' ').map((pair) => pair.split('.'))
  const isValid = seen.every(([id = '', revision = '']) => submissionIdPattern.test(id) && /^\d{1,9}$/.test(revision))
  if (!isValid || seen.length > changedMax)
    throw new RequestRefused(400, 'The form does not say which records. Choose them again.')
  return new Map(seen.map(([id = '', revision]) => [id, Number(revision)]))
}

const namedShown = 20

function skippedList(skipped: readonly SkippedRecord[], words: string): HtmlValue {
  const alike = [...Map.groupBy(skipped, ({ reason }) => reason)].sort(([, a], [, b]) => b.length - a.length)
  const items = alike.map(([reason, all]) => {
    const count = all.length > 1 ? html`<b>${pluralize(all.length, 'record')}</b>: ` : ''
    const more = all.length > namedShown ? ` and ${all.length - namedShown} more` : ''
    const named = all
      .slice(0, namedShown)
      .map(
        ({ submission: { id, outboxId } }) =>
          html`<a href="/records/${id}">outbox:${untrustedTextHtml(outboxId, 36)}</a> `,
      )
    return html`<li>${count}${named}${more} ${untrustedTextHtml(reason, 400)}</li>`
  })
  return html`<h3>${pluralize(skipped.length, 'record')} ${words}</h3><ul>${items}</ul>`
}
