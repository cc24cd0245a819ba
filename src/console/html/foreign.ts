import { type HtmlSafeString, html } from '@prairielearn/html'
import { escapeControl, truncate } from '../../cli/table.ts'

/**
 * A text that the ERP or the service wrote, on one line: control characters and what turns the direction of writing are shown
 * as escapes, its direction ends with it, and so does a text without an end.
 */
export function foreign(text: string, most = 300): HtmlSafeString {
  return html`<span class="foreign${most > briefMax ? ' reason' : ''}">${foreignText(text, most)}</span>`
}

/** A table's column of texts that may be longer is as wide as a few words, however narrow the screen. */
const briefMax = 40

/** The same where no element can stand: in an attribute. */
export const foreignText = (text: string, most = 300): string => escapeControl(truncate(text, most))
