import type { LoggedEvent, SubmissionDetail } from '../../ledger/operator/readSubmissionDetail.ts'
import { isFinalState, type State } from '../../model/submission.ts'
import { type Explanation, explainSubmission } from '../../operations/explainSubmission.ts'
import {
  type CurrentRow,
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
  untrustedTextHtml,
} from '../html/elements.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'
import { actionsHtml } from './resolvePage.ts'
import { maskText } from './valuesHtml.ts'

const nameMaxChars = 60

export const recordName = ({ key, outboxId }: SubmissionDetail): string =>
  cutAndEscapeText(key ?? `row ${outboxId}`, nameMaxChars)

export function recordHeading(detail: SubmissionDetail, revision: number, viewer: Viewer): HtmlPart {
  const { id, key, outboxId, type, state } = detail
  const neighbours = html` · <a href="/records/${id}/former" data-key="[">Former</a> <a href="/records/${id}/next" data-key="]">Next</a> that needs attention`
  return html`<div class="head" id="head" data-live><h1><bdi>${recordName(detail)}</bdi> ${stateBadge(state)}</h1>
<p class="quiet">${key === null ? '' : html`row ${untrustedTextHtml(outboxId, 60)}, `}${untrustedTextHtml(type, 40)}${isFinalState(state) ? '' : neighbours}</p>
${actionsHtml(detail, revision, viewer)}</div>`
}

/** @param row the present row of the outbox, if the record is in conflict with it */
export function recordHtml(detail: SubmissionDetail, row: CurrentRow | null, areValuesShown: boolean): HtmlValue {
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
