import { findReasonProblemClause } from '../../operations/actor.ts'
import { RequestRefused } from '../errors.ts'
import type { Viewer } from '../guard/installGuard.ts'
import { type HtmlPart, type HtmlValue, html } from './html.ts'

interface FormHead {
  action: string
  viewer: Pick<Viewer, 'canChange'>
  class?: string
  /** If false, --read-only does not hide the form. */
  changes?: boolean
}

/** Returns '' if the viewer may not make the change. */
export function formHtml(
  { action, viewer, class: name = 'line', changes = true }: FormHead,
  fields: HtmlValue,
): HtmlValue {
  if (changes && !viewer.canChange) return ''
  return html`<form method="post" action="${action}" class="${name}">
${fields}
</form>`
}

/** Renders what confirms a preview, with a way back. */
export const confirmFormHtml = (
  head: FormHead & { back: string },
  fields: HtmlValue,
  below: HtmlValue = '',
): HtmlValue =>
  formHtml({ class: 'confirm', ...head }, [
    fields,
    html`<a class="button" href="${head.back}" data-close>Cancel</a>`,
    below,
  ])

export const reasonField = html`<label>Reason, if there is one<input name="reason" maxlength="1000"></label>\n`

/** @throws RequestRefused for a reason that the log cannot take, or for none if one is needed */
export function readReason(fields: unknown, isNeeded = false): string | null {
  const reason = trimmedFieldText(fields, 'reason') ?? null
  const wrong = reason === null && !isNeeded ? null : findReasonProblemClause(reason ?? '')
  if (wrong !== null) throw new RequestRefused(400, `The reason ${wrong}: nothing was changed.`)
  return reason
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
