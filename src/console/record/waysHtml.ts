import { type HtmlValue, html } from '@prairielearn/html'
import { discardChange } from '../../operations/discard.ts'
import type { Way } from '../../operations/explainSubmission.ts'
import { replayable } from '../../operations/replay.ts'
import type { Answer, Question } from '../../operations/resolve.ts'
import { whyNotSettled } from '../../operations/whyNotSettled.ts'
import { escapeControl } from '../../plainText.ts'
import type { Viewer } from '../guard/viewer.ts'
import { notice, paragraph } from '../html/elements.ts'
import { form, hidden, optionLabel, tick } from '../html/form.ts'
import { layout } from '../html/layout.ts'
import type { RecordView } from './readRecord.ts'

/** What can be done with a record: a form for each command that would do something. */
export function waysSection(view: RecordView, viewer: Viewer): HtmlValue {
  const { detail } = view
  const canSettle = whyNotSettled(detail) === null
  const forms = [
    replayable.includes(detail.state) ? replayForm(view, viewer) : '',
    canSettle ? arrivedForm(view, viewer) : '',
    canSettle ? notArrivedForm(view, viewer) : '',
    detail.idByPerson ? takeBackForm(view, viewer) : '',
    discardChange.allowedStates.includes(detail.state) ? discardForm(view, viewer) : '',
  ].filter((each) => each !== '')
  if (forms.length === 0) return ''
  return html`<section aria-labelledby="ways-head"><h2 id="ways-head">What you can do</h2><div class="side-by-side">${forms}</div></section>`
}

/** What `show` says of it: to be read after the name of the form. */
function means({ explanation }: RecordView, kind: Way['kind'], otherwise: string): HtmlValue {
  const way = explanation.advice.flatMap(({ ways }) => ways).find((each) => each.kind === kind)
  return html`<p class="quiet">${escapeControl(way?.means || otherwise)}</p>`
}

/** Each has its own place, so that a link to `/records/ID#replay` leads there. */
function way(id: string, title: string, what: HtmlValue, formed: HtmlValue): HtmlValue {
  return formed === '' ? '' : html`<div class="way" id="${id}"><h3>${title}</h3>${what}${formed}</div>`
}

/** As it was seen: what has taken a step since is left alone. */
const seen = ({ submission: { revision } }: RecordView) => hidden('revision', String(revision))

const replayForm = (view: RecordView, viewer: Viewer) =>
  way(
    'replay',
    'Replay',
    means(view, 'replay', 'maps and sends it again; --refresh reads the row anew'),
    form({ action: '/records/choose', viewer }, [
      hidden('id', view.detail.id),
      tick('refresh', optionLabel('refresh')),
      html`<button name="do" value="replay-ticked">Replay …</button>`,
    ]),
  )

const arrivedForm = (view: RecordView, viewer: Viewer) =>
  way(
    'arrived',
    'It arrived',
    means(view, 'arrived', 'the service has it under this id: we follow it to its end'),
    form({ action: resolvePath(view), viewer }, [
      seen(view),
      html`<label class="wide">Its transaction or order id<input name="transaction" required maxlength="500" autocomplete="off"></label>`,
      tick('unchecked', optionLabel('unchecked')),
      html`<button name="answer" value="arrived">It arrived …</button>`,
    ]),
  )

const notArrivedForm = (view: RecordView, viewer: Viewer) =>
  way(
    'not-arrived',
    'It did not arrive',
    means(view, 'not-arrived', 'the service does not have it: we send it again'),
    form({ action: resolvePath(view), viewer }, [
      seen(view),
      tick('new-key', optionLabel('new-key')),
      html`<button name="answer" value="not-arrived">It did not arrive …</button>`,
    ]),
  )

const takeBackForm = (view: RecordView, viewer: Viewer) =>
  way(
    'take-back',
    'Take the id back',
    html`<p class="quiet">The id that a person gave is wrong, and no other is known yet: it is uncertain again.</p>`,
    form({ action: resolvePath(view), viewer }, [
      seen(view),
      html`<button name="answer" value="take-back">Take the id back …</button>`,
    ]),
  )

const discardForm = (view: RecordView, viewer: Viewer) =>
  way(
    'discard',
    'Discard',
    means(view, 'discard', 'it no longer matters'),
    form({ action: '/records/choose', viewer }, [
      hidden('id', view.detail.id),
      html`<button name="do" value="discard-ticked">Discard …</button>`,
    ]),
  )

const resolvePath = ({ detail: { id } }: RecordView) => `/records/${id}/resolve`

/** What a person's word about a record would come to, and the question whether it is meant. */
export interface ResolvePreview {
  id: string
  revision: number
  answer: Answer
  /** What it would come to. */
  message: string
  questions: readonly Question[]
}

export function renderResolve(preview: ResolvePreview, viewer: Viewer): string {
  const { id, message, questions, revision, answer } = preview
  const asked = questions.map(({ text }) => notice('attention', paragraph(text)))
  return layout({ title: 'Is it meant?', current: '/records', viewer }, [
    html`<section>${paragraph(message)}${asked}
${form({ action: `/records/${id}/resolve`, viewer }, [
  hidden('revision', String(revision)),
  ...answerFields(answer),
  hidden('confirmed', 'on'),
  html`<label class="wide">Reason, if there is one<input name="reason" maxlength="1000"></label>`,
  html`<button class="main">${confirmWords(answer)}</button> <a href="/records/${id}">Cancel: change nothing</a>`,
])}</section>`,
  ])
}

function confirmWords({ arrived, notArrived }: Answer): string {
  if (arrived !== undefined) return 'It arrived'
  return notArrived ? 'It did not arrive: send it again' : 'Take the id back'
}

function answerFields({ arrived, notArrived, unchecked, newKey }: Answer): HtmlValue[] {
  const answer = arrived !== undefined ? 'arrived' : notArrived ? 'not-arrived' : 'take-back'
  return [
    hidden('answer', answer),
    arrived === undefined ? '' : hidden('transaction', arrived),
    unchecked ? hidden('unchecked', 'on') : '',
    newKey ? hidden('new-key', 'on') : '',
  ]
}
