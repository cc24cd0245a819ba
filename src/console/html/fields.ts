import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'

/** A value that a form brings back as it was rendered. */
export const hidden = (name: string, value: string): HtmlSafeString =>
  html`<input type="hidden" name="${name}" value="${value}">`

/** A box to tick, with its words; not ticked, it is no field of what is sent. */
export const tick = (name: string, words: HtmlValue, { value = 'on', isOn = false } = {}): HtmlSafeString =>
  html`<label class="tick"><input type="checkbox" name="${name}" value="${value}"${isOn ? html` checked` : ''}> ${words}</label>\n`
