import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import type { LoggedEvent } from '../../ledger/operator/readSubmissionDetail.ts'
import type { ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import {
  conflictLines,
  eventDetails,
  type Fact,
  noneBecause,
  submissionFacts,
} from '../../operations/submissionFacts.ts'
import { capitalize, escapeControl, escapeLines } from '../../plainText.ts'
import { showDuration } from '../../time.ts'
import type { Viewer } from '../guard/viewer.ts'
import { age, factList, foreign, foreignText, moment, notice, paragraph, type Tone, table } from '../html/elements.ts'
import { form } from '../html/form.ts'
import { layout } from '../html/layout.ts'
import { recordCells, recordColumns } from '../records/recordsHtml.ts'
import { maskedWords } from '../sights.ts'
import type { RecordView } from './readRecord.ts'
import { fieldsSection, mask, shownJson } from './valuesHtml.ts'
import { waysSection } from './waysHtml.ts'

/** What a page says first. */
export interface PageMessage {
  tone: Tone
  text: string
}

/** How a page of a record is shown. */
export interface RecordShown {
  viewer: Viewer
  /** Its values: somebody has asked for them. */
  isShown: boolean
  /** What was done a moment ago, or why it was not. */
  message: PageMessage | null
}

/** A record: where it is and why, what comes next, what can be done, what happened, and what it holds. */
export function renderRecord(view: RecordView, shown: RecordShown): string {
  const { detail, submission } = view
  const version = `${submission.revision}.${detail.polls}`
  return layout(
    {
      title: `Record outbox:${foreignText(detail.outboxId, 60)}`,
      current: '/records',
      viewer: shown.viewer,
      live: { topic: `record:${detail.id}`, version },
    },
    [
      shown.message === null ? '' : notice(shown.message.tone, shown.message.text.split('\n').map(paragraph)),
      html`<div id="stands" data-live>${standing(view)}</div>`,
      html`<div id="ways" data-live>${waysSection(view, shown.viewer)}</div>`,
      html`<section aria-labelledby="steps-head"><h2 id="steps-head">What happened</h2><div id="steps" data-live>${timeline(view, shown.isShown)}</div></section>`,
      html`<section aria-labelledby="facts-head"><h2 id="facts-head">Facts</h2><div id="facts" data-live>${facts(view)}</div></section>`,
      valuesSection(view, shown),
    ],
  )
}

const tones: Record<ListedSubmission['state'], Tone> = {
  queued: 'quiet',
  sending: 'quiet',
  accepted: 'quiet',
  completed: 'good',
  failed: 'bad',
  rejected: 'bad',
  uncertain: 'attention',
  discarded: 'quiet',
}

function standing({ detail, explanation, row }: RecordView): HtmlValue {
  const next = explanation.advice.map(({ words, ways }, i) => {
    const below = ways.length > 0 && /\bthen( perhaps)?$/.test(words) ? ' choose below' : ''
    return html`<p>${i === 0 ? 'Next: ' : ''}${escapeControl(words)}${below}</p>`
  })
  return [
    notice(tones[detail.state], [
      html`<p><strong>${detail.state}</strong>: <span class="foreign">${escapeControl(explanation.why)}</span></p>`,
      next,
      detail.held && detail.blocker !== null ? blockerLink(detail.blocker) : '',
    ]),
    detail.conflict === null
      ? ''
      : notice(
          'bad',
          conflictLines(detail, row).map((line) => paragraph(line.trim())),
        ),
  ]
}

const blockerLink = ({ outboxId }: { outboxId: string }) =>
  html`<p><a href="/records/${encodeURIComponent(`outbox:${outboxId}`)}">outbox:${foreign(outboxId, 60)}</a></p>`

const facts = ({ detail }: RecordView) =>
  factList(submissionFacts(detail).map(([name, fact]) => [name, factHtml(fact, detail.nowMs)]))

const factHtml = (fact: Fact, nowMs: number): HtmlValue =>
  typeof fact === 'string' ? foreign(fact, 2_000) : html`${moment(fact.atMs)} (${age(fact.atMs, nowMs)})`

/** The steps, each with how long after the former it was. */
function timeline({ detail: { events } }: RecordView, isShown: boolean): HtmlValue {
  return html`<ol class="steps">${events.map((event, i) => step(event, events[i - 1] ?? null, isShown))}</ol>`
}

function step(event: LoggedEvent, former: LoggedEvent | null, isShown: boolean): HtmlValue {
  const { atMs, from, to, attempt, cause, who } = event
  const states = from === null || from === to ? to : `${from} → ${to}`
  const after = former === null ? '' : html`<span class="after">+${distance(atMs - former.atMs)}</span>`
  const details = eventDetails(event).map(
    ([name, value]) =>
      html`<div><dt>${name}</dt><dd>${isShown || !isOfRecord(name) ? foreign(value, 2_000) : mask}</dd></div>`,
  )
  return html`<li><p>${moment(atMs)} ${after}</p>
<p><strong>${states}</strong> ${foreign(cause, 500)} <span class="quiet">(${foreign(who, 100)}, attempt ${attempt})</span></p>
${details.length > 0 ? html`<dl>${details}</dl>` : ''}</li>\n`
}

const distance = (ms: number) => (ms < 1_000 ? `${Math.round(ms)} ms` : showDuration(ms))

/** What an event keeps that is the record's own. */
const isOfRecord = (name: string) => /(payload|body|result|answer)$/.test(name)

function valuesSection(view: RecordView, { viewer, isShown }: RecordShown): HtmlValue {
  const { id, payload, body, result, attempt } = view.detail
  const asking = isShown
    ? form(
        { action: `/records/${id}/hide`, viewer, changes: false },
        html`<p>Shown to you for a quarter of an hour.</p><button>Hide the values</button>`,
      )
    : form(
        { action: `/records/${id}/show`, viewer, changes: false },
        html`<p>${maskedWords(viewer)}</p><button>Show the values</button>`,
      )
  return html`<section aria-labelledby="values-head"><h2 id="values-head">What it holds</h2>${asking}</section>
${fieldsSection(view, isShown)}
${jsonSection(view, 'payload', 'Payload, as the ERP wrote it', payload ?? '', payload === null ? noneBecause(view.detail, 'it could not be read') : null, isShown)}
${jsonSection(view, 'body', attempt > 0 ? 'Request, as it is sent' : 'Request, as it would be sent', body ?? '', body === null ? noneBecause(view.detail, 'the record did not map') : null, isShown)}
${result === null ? '' : jsonSection(view, 'result', 'Answer, as the service gave it', result, null, isShown)}`
}

/** @param none said in the place of what there is not */
function jsonSection(
  { detail: { id } }: RecordView,
  name: string,
  title: string,
  json: string,
  none: string | null,
  isShown: boolean,
): HtmlSafeString {
  const { text, isCut } = shownJson(json, !isShown)
  const whole = isShown
    ? html`<p><a href="/records/${id}/${name}.txt">The whole as text</a>, digit for digit as it is stored${isCut ? '; here is its beginning' : ''}</p>`
    : isCut
      ? html`<p class="quiet">Here is its beginning.</p>`
      : ''
  return html`<section aria-labelledby="${name}-head"><h2 id="${name}-head">${title}</h2>
${none === null ? html`<pre tabindex="0" aria-labelledby="${name}-head" role="group">${escapeLines(text)}</pre>${whole}` : html`<p class="empty">(${none})</p>`}</section>`
}

/** Several records that a name fits. */
export function renderSeveral(
  name: string,
  submissions: readonly ListedSubmission[],
  isCut: boolean,
  viewer: Viewer,
  nowMs: number,
): string {
  return layout({ title: `Several records fit`, current: '/records', viewer }, [
    html`<p>These fit ${foreign(name, 100)}${isCut ? ', and more do' : ''}: choose one.</p>`,
    html`<section>${table(
      'Records',
      recordColumns,
      submissions.map((each) => recordCells(each, nowMs)),
    )}</section>`,
  ])
}

/** A name that fits no record: why, and what is known of it all the same. */
export function renderMissing(message: string, outboxId: string | null, viewer: Viewer): string {
  return layout({ title: 'No such record', current: '/records', viewer }, [
    notice('attention', paragraph(`${capitalize(message)}.`)),
    outboxId === null
      ? ''
      : html`<p><a href="/mapping?outbox=${encodeURIComponent(outboxId)}">Mapping</a>: the request that the row would become</p>`,
    html`<p><a href="/records">Records</a></p>`,
  ])
}
