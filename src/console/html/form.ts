import type { Viewer } from '../guard/viewer.ts'
import { type HtmlPart, type HtmlValue, html } from './html.ts'

interface FormHead {
  action: string
  viewer: Pick<Viewer, 'csrf' | 'canChange'>
  class?: string
  /** If false, --read-only does not hide the form. */
  changes?: boolean
  /** True if assets/console.js shows the answer in a dialog over the page. */
  isDialog?: boolean
}

/** Renders a form with the guard's token; '' if the viewer may not make the change. */
export function formHtml(
  { action, viewer, class: name, changes = true, isDialog }: FormHead,
  fields: HtmlValue,
): HtmlValue {
  if (changes && !viewer.canChange) return ''
  return html`<form method="post" action="${action}" class="${name ?? 'line'}"${isDialog ? html` data-dialog` : ''}>
${hiddenField('csrf', viewer.csrf)}
${fields}
</form>`
}

export const hiddenField = (name: string, value: string): HtmlPart =>
  html`<input type="hidden" name="${name}" value="${value}">`

export function optionalHiddenField(fields: unknown, name: string): HtmlValue {
  const value = trimmedFieldText(fields, name)
  return value === undefined ? '' : hiddenField(name, value)
}

export const checkbox = (name: string, label: HtmlValue, { value = 'on', isOn = false } = {}): HtmlPart =>
  html`<label class="tick"><input type="checkbox" name="${name}" value="${value}"${isOn ? html` checked` : ''}> ${label}</label>\n`

export const optionWords = {
  type: 'Type',
  key: 'Key',
  code: 'Error code',
  since: 'In its state since',
  until: 'Until',
  transaction: 'Transaction',
  containing: 'Containing',
  cause: 'Cause',
  limit: 'Rows per page',
  'may-have-arrived': 'May have arrived',
  refresh: 'Read the row again',
  'even-if-arrived': 'Include what may have arrived',
  'new-key': 'New idempotency key',
  unchecked: 'Without asking the service',
} as const
export type OptionName = keyof typeof optionWords

export const optionLabel = (name: OptionName): HtmlPart => html`${optionWords[name]} <code>--${name}</code>`

/** Returns undefined if the field is missing, blank or came twice. */
export function trimmedFieldText(fields: unknown, name: string): string | undefined {
  return fieldTextAsTyped(fields, name).trim() || undefined
}

/** Keeps white space. Returns '' if the field is missing or came twice. */
export function fieldTextAsTyped(fields: unknown, name: string): string {
  const value = (fields as Record<string, unknown> | null | undefined)?.[name]
  return typeof value === 'string' ? value : ''
}
