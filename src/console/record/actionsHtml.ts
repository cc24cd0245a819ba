import { type HtmlValue, html } from '@prairielearn/html'
import { discardChange } from '../../operations/discard.ts'
import { replayable } from '../../operations/replay.ts'
import { type Question, type ResolveAnswer, whyNotSettled } from '../../operations/resolve.ts'
import { escapeControl } from '../../plainText.ts'
import type { Viewer } from '../guard/viewer.ts'
import { notice, paragraph, section } from '../html/elements.ts'
import { checkbox, form, hiddenField, optionLabel } from '../html/form.ts'
import { layout } from '../html/layout.ts'
import type { RecordView } from './readRecord.ts'

export function actionsSection(view: RecordView, viewer: Viewer): HtmlValue {
  if (!viewer.canChange) return ''
  const { detail, explanation } = view
  const said = explanation.advice.flatMap(({ ways }) => ways)
  const forms = ways
    .filter(({ isOpen }) => isOpen(detail))
    .map(({ id, title, means, fields, button }) => {
      const isBulk = id === 'replay' || id === 'discard'
      const action = isBulk ? '/records/choose' : `/records/${detail.id}/resolve`
      // A record that has changed since the page was loaded is skipped.
      const seen = isBulk ? hiddenField('id', detail.id) : hiddenField('revision', String(view.submission.revision))
      const submit = isBulk
        ? html`<button name="do" value="${id}-ticked">${button}</button>`
        : html`<button name="answer" value="${id}">${button}</button>`
      return html`<div class="way" id="${id}"><h3>${title}</h3>
<p class="quiet">${escapeControl(said.find(({ kind }) => kind === id)?.means || means)}</p>
${form({ action, viewer }, [seen, fields, submit])}</div>`
    })
  return forms.length === 0 ? '' : section('ways', 'What you can do', html`<div class="side-by-side">${forms}</div>`)
}

interface WayForm {
  id: 'replay' | 'arrived' | 'not-arrived' | 'take-back' | 'discard'
  title: string
  isOpen: (detail: RecordView['detail']) => boolean
  means: string
  fields: HtmlValue
  button: string
}

const canSettle = (detail: RecordView['detail']) => whyNotSettled(detail) === null

const ways: readonly WayForm[] = [
  {
    id: 'replay',
    title: 'Replay',
    isOpen: ({ state }) => replayable.includes(state),
    means: 'map it and send it again; --refresh reads the row again',
    fields: checkbox('refresh', optionLabel('refresh')),
    button: 'Replay …',
  },
  {
    id: 'arrived',
    title: 'It arrived',
    isOpen: canSettle,
    means: 'the service has it under this id; outboxd tracks it to its end',
    fields: html`<label class="wide">Its transaction or order id<input name="transaction" required maxlength="500" autocomplete="off"></label>
${checkbox('unchecked', optionLabel('unchecked'))}`,
    button: 'It arrived …',
  },
  {
    id: 'not-arrived',
    title: 'It did not arrive',
    isOpen: canSettle,
    means: 'the service does not have it; outboxd sends it again',
    fields: checkbox('new-key', optionLabel('new-key')),
    button: 'It did not arrive …',
  },
  {
    id: 'take-back',
    title: 'Take the id back',
    isOpen: ({ idByPerson }) => idByPerson,
    means: 'the id that an operator gave is wrong; the record becomes uncertain again',
    fields: '',
    button: 'Take the id back …',
  },
  {
    id: 'discard',
    title: 'Discard',
    isOpen: ({ state }) => discardChange.allowedStates.includes(state),
    means: 'if it no longer matters',
    fields: '',
    button: 'Discard …',
  },
]

export interface ResolvePreview {
  id: string
  revision: number
  answer: ResolveAnswer
  message: string
  question: Question | null
}

export function renderResolve(preview: ResolvePreview, viewer: Viewer): string {
  const { id, message, question, revision, answer } = preview
  const asked = question === null ? '' : notice('attention', paragraph(question.text))
  return layout({ title: 'Confirm', current: '/records', viewer }, [
    html`<section>${paragraph(message)}${asked}
${form({ action: `/records/${id}/resolve`, viewer }, [
  hiddenField('revision', String(revision)),
  ...answerFields(answer),
  hiddenField('confirmed', 'on'),
  html`<label class="wide">Reason (optional)<input name="reason" maxlength="1000"></label>`,
  html`<button class="main">${confirmWords(answer)}</button> <a href="/records/${id}">Cancel: change nothing</a>`,
])}</section>`,
  ])
}

function confirmWords({ arrived, notArrived }: ResolveAnswer): string {
  if (arrived !== undefined) return 'It arrived'
  return notArrived ? 'It did not arrive: send it again' : 'Take the id back'
}

function answerFields({ arrived, notArrived, unchecked, newKey }: ResolveAnswer): HtmlValue[] {
  const answer = arrived !== undefined ? 'arrived' : notArrived ? 'not-arrived' : 'take-back'
  return [
    hiddenField('answer', answer),
    arrived === undefined ? '' : hiddenField('transaction', arrived),
    unchecked ? hiddenField('unchecked', 'on') : '',
    newKey ? hiddenField('new-key', 'on') : '',
  ]
}
