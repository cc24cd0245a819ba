import type { LoggedEvent } from '../../ledger/operator/readSubmissionDetail.ts'
import type { ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import { isFinalState } from '../../model/submission.ts'
import {
  eventDetails,
  eventText,
  rowConflictLines,
  type SubmissionDetailValue,
  submissionDetailRows,
} from '../../operations/submissionFacts.ts'
import { capitalize, escapeControl } from '../../plainText.ts'
import { formatDuration } from '../../time.ts'
import type { Viewer } from '../guard/viewer.ts'
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
  untrustedParagraphHtml,
  untrustedTextHtml,
} from '../html/elements.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'
import { type Page, renderPage } from '../html/layout.ts'
import { recordTable } from '../records/recordTable.ts'
import type { RecordPageData } from './readRecord.ts'
import { actionsHtml } from './resolvePage.ts'
import { maskText, valuesSection } from './valuesHtml.ts'

const nameMaxChars = 60

export function renderRecordPage(view: RecordPageData, viewer: Viewer, version: string, areValuesShown: boolean): Page {
  const { detail } = view
  const live = { path: `/records/${detail.id}/version`, version }
  const name = cutAndEscapeText(detail.key ?? `row ${detail.outboxId}`, nameMaxChars)
  const row = detail.key === null ? '' : html`row ${untrustedTextHtml(detail.outboxId, 60)}, `
  const heading = html`<div class="head" id="head" data-live><h1><bdi>${name}</bdi> ${stateBadge(detail.state)}</h1>
<p class="quiet">${row}${untrustedTextHtml(detail.type, 40)}${
    isFinalState(detail.state)
      ? ''
      : html` · <a href="/records/${detail.id}/former" data-key="[">Former</a> <a href="/records/${detail.id}/next" data-key="]">Next</a> that needs attention`
  }</p>
${actionsHtml(view, viewer)}</div>`
  return renderPage({ title: name, heading, current: '/records', viewer, live }, [
    liveHtml('stands', standing(view)),
    html`<div class="wide">
${section('steps', 'What happened', liveHtml('steps', timeline(view, areValuesShown)))}
${section('facts', 'Facts', liveHtml('facts', facts(view)))}</div>`,
    valuesSection(view, viewer, areValuesShown),
  ])
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

function standing({ detail, explanation, rowIfConflict }: RecordPageData): HtmlValue {
  const next = explanation.advice.map(({ words, ways }) => {
    const text = ways.length > 0 ? `${words.replace(/, then$/, '')}. Choose above.` : words
    return html`<p>${escapeControl(sentence(text))}</p>`
  })
  return [
    notice(tones[detail.state], [
      html`<p><bdi>${escapeControl(sentence(explanation.why))}</bdi></p>`,
      next,
      detail.held && detail.blocker !== null ? blockerLink(detail.blocker) : '',
    ]),
    detail.conflict === null
      ? ''
      : notice(
          'bad',
          rowConflictLines(detail, rowIfConflict).map((line) => untrustedParagraphHtml(line.trim())),
        ),
  ]
}

/** Leaves the name of a field at the beginning as it is. */
const sentence = (words: string) =>
  `${/^[a-z]+[ ,:]/.test(words) ? capitalize(words) : words}${/[.!?]$/.test(words) ? '' : '.'}`

const blockerLink = ({ outboxId }: { outboxId: string }) =>
  html`<p><a href="/records/${encodeURIComponent(`outbox:${outboxId}`)}">outbox:${untrustedTextHtml(outboxId, 60)}</a></p>`

/** Without those that the page says above. */
function facts({ detail, explanation }: RecordPageData): HtmlPart {
  const above: Partial<Record<string, SubmissionDetailValue | null>> = {
    ...{ 'outbox row': detail.outboxId, type: detail.type, error: explanation.why },
    key: detail.key === cutAndEscapeText(detail.key ?? '', nameMaxChars) ? detail.key : null,
  }
  const rest = submissionDetailRows(detail).filter(([name, fact]) => above[name] !== fact)
  return descriptionListHtml(rest.map(([name, fact]) => [capitalize(name), factHtml(fact, detail.nowMs)]))
}

const factHtml = (fact: SubmissionDetailValue, nowMs: number): HtmlValue =>
  typeof fact === 'string'
    ? untrustedTextHtml(fact, 2_000)
    : html`${instantHtml(fact.atMs)} (${relativeTimeHtml(fact.atMs, nowMs)})`

function timeline({ detail: { events } }: RecordPageData, isShown: boolean): HtmlValue {
  return html`<ol class="steps">${events.map((event, i) => step(event, events[i - 1] ?? null, isShown))}</ol>`
}

function step(event: LoggedEvent, former: LoggedEvent | null, isShown: boolean): HtmlValue {
  const { atMs, from, to, attempt, who } = event
  const states = from === null || from === to ? to : `${from} → ${to}`
  const after = former === null ? '' : html` <span class="after">+${distance(atMs - former.atMs)}</span>`
  const words = eventText(event)
  const details = eventDetails(event).map(([name, value]): [string, HtmlValue] => [
    name,
    isShown || !isOfRecord(name) ? untrustedTextHtml(value, 2_000) : maskText,
  ])
  return html`<li><span class="state ${to}">${icon(to)}</span><div><p><strong>${words === '' ? states : untrustedTextHtml(capitalize(words), 500)}</strong>
<span class="quiet">${words === '' ? '' : `${states}, `}attempt ${attempt}, ${untrustedTextHtml(who, 100)}</span></p>
${details.length > 0 ? descriptionListHtml(details) : ''}</div><p class="quiet">${instantHtml(atMs)}${after}</p></li>\n`
}

const distance = (ms: number) => (ms < 1_000 ? `${Math.round(ms)} ms` : formatDuration(ms))

const isOfRecord = (name: string) => /(payload|body|result|answer)$/.test(name)

export function renderMatchingRecords(
  name: string,
  submissions: readonly ListedSubmission[],
  isCut: boolean,
  viewer: Viewer,
  nowMs: number,
): Page {
  return renderPage({ title: `Several records match`, current: '/records', viewer }, [
    html`<p>These match ${untrustedTextHtml(name, 100)}${isCut ? ', and there are more' : ''}. Choose one.</p>`,
    html`<section>${recordTable('Records', submissions, nowMs)}</section>`,
  ])
}

export function renderMissingRecord(word: string, message: string, viewer: Viewer): Page {
  const text = encodeURIComponent(word.replace(/^(outbox|transaction|key):/, ''))
  const mapping = html`<p><a href="/mapping?outbox=${text}">Mapping</a>: the request that the row would become</p>`
  return renderPage({ title: 'No such record', current: '/records', viewer }, [
    notice('attention', untrustedParagraphHtml(`${capitalize(message)}.`)),
    word.startsWith('outbox:') ? mapping : '',
    html`<p><a href="/records?containing=${text}">Search the values of all records</a>; the search is logged</p>`,
    html`<p><a href="/records">Records</a></p>`,
  ])
}
