import { type HtmlValue, html } from '@prairielearn/html'
import type { Answer, Question } from '../../operations/resolve.ts'
import type { Viewer } from '../guard/viewer.ts'
import { advice, fieldWords } from '../html/advice.ts'
import { hidden } from '../html/fields.ts'
import { form } from '../html/form.ts'
import { layout } from '../html/layout.ts'
import { notice } from '../html/notice.ts'

/** What a person's word about a record would come to, and the question whether it is meant. */
export interface ResolvePreview {
  id: string
  outboxId: string
  revision: number
  answer: Answer
  /** What it would come to. */
  message: string
  questions: readonly Question[]
  /** What the sentences were made of. */
  madeOf: unknown
}

export function renderResolve(preview: ResolvePreview, viewer: Viewer): string {
  const { id, message, questions, revision, answer, madeOf } = preview
  const asked = questions.map(({ text }) => notice('attention', html`<p>${advice(text, madeOf)}</p>`))
  return layout({ title: 'Is it meant?', current: '/records', viewer }, [
    html`<section><p>${advice(message, madeOf)}</p>${asked}
${form({ action: `/records/${id}/resolve`, viewer }, [
  hidden('revision', String(revision)),
  ...answerFields(answer),
  hidden('confirmed', 'on'),
  html`<label class="wide">${fieldWords.reason}, where there is one<input name="reason" maxlength="1000"></label>`,
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
