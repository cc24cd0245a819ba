import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import type { Viewer } from '../guard/viewer.ts'

export interface FormHead {
  action: string
  viewer: Pick<Viewer, 'csrf' | 'canChange'>
  class?: string
  /** False for a form that changes nothing in the ledger, so that --read-only has it, too. */
  changes?: boolean
}

/** A form with the guard's token; '' if it would change something and the viewer may not. */
export function form({ action, viewer, class: name, changes = true }: FormHead, fields: HtmlValue): HtmlValue {
  if (changes && !viewer.canChange) return ''
  return html`<form method="post" action="${action}" class="${name ?? 'line'}">
${hidden('csrf', viewer.csrf)}
${fields}
</form>`
}

export const hidden = (name: string, value: string): HtmlSafeString =>
  html`<input type="hidden" name="${name}" value="${value}">`

/** A box to tick. Unticked, the form has no such field. */
export const tick = (name: string, words: HtmlValue, { value = 'on', isOn = false } = {}): HtmlSafeString =>
  html`<label class="tick"><input type="checkbox" name="${name}" value="${value}"${isOn ? html` checked` : ''}> ${words}</label>\n`

const optionWords = {
  type: 'Type',
  key: 'Key',
  code: 'Error code',
  since: 'In its state since',
  until: 'Until',
  transaction: 'Transaction',
  containing: 'Containing',
  cause: 'Cause',
  limit: 'Rows a page',
  'may-have-arrived': 'May have arrived',
  refresh: 'Read the row anew',
  'even-if-arrived': 'Also what may have arrived',
  'new-key': 'New idempotency key',
  unchecked: 'Without asking the service',
} as const
export type OptionName = keyof typeof optionWords

/** The label of a field for an option of the commands, with the option's name: messages name it. */
export const optionLabel = (name: OptionName): HtmlSafeString => html`${optionWords[name]} <code>--${name}</code>`

/** A field's text; undefined if it is empty, or came twice. */
export function formText(fields: unknown, name: string): string | undefined {
  return textAsTyped(fields, name).trim() || undefined
}

/** The same with the white space around it; '' if it is missing. */
export function textAsTyped(fields: unknown, name: string): string {
  const value = (fields as Record<string, unknown> | null | undefined)?.[name]
  return typeof value === 'string' ? value : ''
}
