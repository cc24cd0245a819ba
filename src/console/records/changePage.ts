import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { findSubmissions, type ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import {
  type BulkChangeRules,
  type BulkOutcome,
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
import { capitalize, pluralize } from '../../plainText.ts'
import { BoundedMap } from '../bounds.ts'
import { RequestRefused } from '../errors.ts'
import { notice, table, untrustedTextHtml } from '../html/elements.ts'
import {
  checkbox,
  confirmFormHtml,
  hiddenField,
  optionalHiddenField,
  optionLabel,
  readReason,
  reasonField,
  trimmedFieldText,
} from '../html/form.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'
import { sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import { createLoggedSearch } from '../valueAccess.ts'
import { type FormFields, queryEntries, readRecordsQuery, toFilterOptions } from './recordsQuery.ts'
import { recordTable } from './recordTable.ts'

/** What became of a change, so that a link leads to exactly its records. */
interface RecentChange extends BulkOutcome {
  verb: BulkChangeRules['verb']
  /** Records of the preview that are neither done nor skipped. */
  rest: number
}

const changesMax = 200

/** By a name of each. Kept until the console ends or 200 changes followed. */
export class RecentChanges extends BoundedMap<string, RecentChange> {
  constructor() {
    super(changesMax)
  }

  /** @throws RequestRefused if it is not known any more */
  override get(name: string): RecentChange {
    const change = super.get(name)
    if (change !== undefined) return change
    throw new RequestRefused(404, 'This console no longer knows which records that change had. Activity names them.')
  }
}

/** The preview is a form with the id and revision of each record shown, so that no other record is changed. */
export function addBulkChangeRoutes(app: FastifyInstance, parts: ConsoleParts, changes: RecentChanges): void {
  const stopping = new AbortController()
  app.addHook('preClose', async () => stopping.abort())

  app.post<{ Body: FormFields }>('/records/choose', async ({ body }, reply) => sendPreview(parts, body, reply))

  app.post<{ Body: FormFields }>('/records/change', async ({ body, viewer }, reply) => {
    const reason = readReason(body, verbOf(body) === 'discard')
    const change = await carryOut(parts, body, { who: viewer.who, reason }, stopping.signal)
    const { done, skipped, rest, failure } = change
    const isOne = done.length === 1 && skipped.length === 0 && rest === 0 && failure === undefined
    if (isOne) return reply.redirect(`/records/${done[0]}`, 303)
    const name = randomUUID()
    changes.set(name, change)
    return reply.redirect(`/records?changed=${name}`, 303)
  })
}

/** Bounds the form and the time of a preview. */
const changedMax = 2_000
export const pageRowsMax = 200

const termsOf = (fields: FormFields): ReplayTerms => ({
  refresh: fields.refresh !== undefined,
  discarded: false,
  evenIfArrived: fields['even-if-arrived'] !== undefined,
  newKey: fields['new-key'] !== undefined,
})

function verbOf(fields: FormFields): BulkChangeRules['verb'] {
  const verb = trimmedFieldText(fields, 'do')
  if (verb !== 'replay' && verb !== 'discard') throw new RequestRefused(400, 'The form does not say what to do.')
  return verb
}

const rulesOf = (fields: FormFields) => (verbOf(fields) === 'replay' ? replayRules(termsOf(fields)) : discardRules)

function readChoice(fields: FormFields): Pick<RecordChoice, 'ids' | 'filters'> {
  // The form's limit is the length of a page, so it is not used.
  if (fields.all !== undefined)
    return { ids: [], filters: { ...toFilterOptions(readRecordsQuery(fields)), limit: String(changedMax) } }
  const ids = [...new Set([fields.id ?? []].flat())]
  if (ids.length === 0) throw new RequestRefused(400, 'No record is ticked. Tick some, or select all.')
  if (ids.length > pageRowsMax || !ids.every((id) => submissionIdPattern.test(id)))
    throw new RequestRefused(400, `The form takes at most ${pageRowsMax} ticked records by id. Select all instead.`)
  return { ids, filters: {} }
}

async function sendPreview(parts: ConsoleParts, fields: FormFields, reply: FastifyReply): Promise<FastifyReply> {
  const { viewer } = reply.request
  const databases = await parts.databases()
  const rules = rulesOf(fields)
  const { verb } = rules
  const warnings: string[] = []
  const choice = readChoice(fields)
  const asked = { ...choice, nowMs: parts.clock.nowMs() }
  const search = createLoggedSearch(parts, viewer)
  const chosen = await chooseSubmissions(databases.ledger, search, rules, asked, (cut) => void warnings.push(cut))
  if (chosen.kind !== 'chosen') throw new RequestRefused(400, chosen.problems.join('\n'))
  if (chosen.submissions.length === changedMax)
    warnings.push(`The console changes at most ${changedMax} records at once. Repeat it for the rest.`)
  let { submissions, skipped } = chosen
  let cost = ''
  if (verb === 'replay') {
    const trial = { databases, mappings: await loadLedgerMappings(databases), operator: null }
    const tried = await replaySubmissions(trial, submissions, termsOf(fields), { signal: new AbortController().signal })
    if (tried.failure !== undefined) throw tried.failure
    const mapped = new Set(tried.done)
    submissions = submissions.filter(({ id }) => mapped.has(id))
    skipped = [...skipped, ...tried.skipped]
    cost = await readReplayCostMessage(databases, submissions.length)
  }
  const isNone = submissions.length === 0
  const words = `${capitalize(verb)} ${pluralize(submissions.length, 'record')}`
  const risks = [...warnings, rules.riskOf(submissions)].filter(Boolean)
  const confirmation =
    verb === 'discard'
      ? html`<label>Reason, kept with each record<input name="reason" maxlength="1000" required autofocus></label>
<button class="grave">${words}</button>`
      : [reasonField, html`<button class="main" autofocus>${words}</button>`]
  const hidden = [
    ...queryEntries(readRecordsQuery(fields)),
    ...choice.ids.map((id) => ['id', id] as const),
    ['seen', submissions.map(({ id, revision }) => `${id}.${revision}`).join(' ')] as const,
  ].map(([name, value]) => hiddenField(name, value))
  return sendPage(reply, { title: `${words}?` }, [
    risks.map((risk) => notice('attention', risk)),
    isNone ? notice('quiet', `There is nothing to ${verb}.`) : chosenRecords(submissions, cost, asked.nowMs),
    skipped.length === 0 ? '' : skippedList(skipped, 'would be skipped'),
    confirmFormHtml(
      { action: '/records/change', viewer, back: '/records' },
      [hidden, ['do', 'all'].map((name) => optionalHiddenField(fields, name)), isNone ? '' : confirmation],
      // After the main button, which Enter in the reason presses.
      verb === 'replay' ? replayOptions(termsOf(fields), isNone) : '',
    ),
  ])
}

const chosenRecords = (submissions: readonly ListedSubmission[], cost: string, nowMs: number): HtmlValue => [
  cost === '' ? '' : html`<p>${cost}</p>`,
  table(
    'How many of each kind',
    ['Records', 'State', 'Type', 'Code', 'Note'],
    groupSubmissionsByKind(submissions).map((group) => [
      group.count,
      group.state,
      untrustedTextHtml(group.type, 24),
      group.code === null ? '–' : untrustedTextHtml(group.code, 16),
      group.mayHaveArrived ? html`<strong class="attention">${mayHaveArrivedCell(group)}</strong>` : '',
    ]),
  ),
  html`<h2>${submissions.length > previewedRecordsMax ? `The first ${previewedRecordsMax} of ${submissions.length}` : 'All of them'}</h2>`,
  recordTable('The first records', submissions.slice(0, previewedRecordsMax), nowMs),
]

function replayOptions({ refresh, evenIfArrived, newKey }: ReplayTerms, areNeeded: boolean): HtmlPart {
  const isOpen = areNeeded || refresh || evenIfArrived || newKey
  return html`<details${isOpen ? html` open` : ''}><summary>Options</summary>
${checkbox('refresh', optionLabel('refresh'), { isOn: refresh })}${checkbox('even-if-arrived', optionLabel('even-if-arrived'), { isOn: evenIfArrived })}
${checkbox('new-key', optionLabel('new-key'), { isOn: newKey })}<button formaction="/records/choose">Preview again</button></details>`
}

async function carryOut(
  parts: ConsoleParts,
  fields: FormFields,
  actor: { who: string; reason: string | null },
  signal: AbortSignal,
): Promise<RecentChange> {
  const rules = rulesOf(fields)
  const seen = readSeen(trimmedFieldText(fields, 'seen') ?? '')
  const databases = await parts.databases()
  const operator = createOperator(databases, actor)
  const found = await findSubmissions(databases.ledger, { kind: 'ids', value: [...seen.keys()] }, seen.size)
  const asSeen = found.filter(
    ({ id, revision, state }) => seen.get(id) === revision && rules.allowedStates.includes(state),
  )
  const replayParts = async () => ({ databases, operator, mappings: await loadLedgerMappings(databases) })
  const { done, skipped, failure } =
    rules.verb === 'discard'
      ? await discardSubmissions(operator, asSeen, { signal })
      : await replaySubmissions(await replayParts(), asSeen, termsOf(fields), { signal })
  const all = [...listSkippedAsChanged(found, new Set(asSeen.map(({ id }) => id))), ...skipped]
  return { verb: rules.verb, done, skipped: all, failure, rest: seen.size - done.length - all.length }
}

/** What became of a change, above the list of its records. */
export function outcomeHtml({ verb, done, skipped, failure, rest }: RecentChange): HtmlValue {
  const did = `${verb === 'discard' ? 'Discarded' : 'Replayed'} ${pluralize(done.length, 'record')}`
  const others = skipped.length > 0 ? `; ${pluralize(skipped.length, 'record')} skipped` : ''
  const follow = done.length > 0 && verb === 'replay' ? ' They show below what becomes of them.' : ''
  return [
    failure === undefined ? '' : notice('bad', explainError(failure).message),
    notice(skipped.length + rest > 0 ? 'attention' : 'good', `${did}${others}.${follow}`),
    rest > 0 ? notice('attention', `${pluralize(rest, 'record')} ${restWords}`) : '',
    skipped.length > 0 ? html`<section>${skippedList(skipped, 'skipped')}</section>` : '',
  ]
}

const restWords = "not changed, because an error or the console's end prevented it, or the record was deleted."

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
  return html`<h2>${pluralize(skipped.length, 'record')} ${words}</h2><ul>${items}</ul>`
}
