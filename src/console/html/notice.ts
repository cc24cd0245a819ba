import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'

/** How a sentence is meant. */
export type Tone = 'good' | 'attention' | 'bad' | 'quiet'

/** A sentence or more that stand out: what is wrong, what was done. The tone is also said by a sign, not by colour alone. */
export function notice(tone: Tone, words: HtmlValue): HtmlSafeString {
  return html`<div class="notice ${tone}">${words}</div>`
}

/** What stands where there is nothing to show, and what to do then. */
export function empty(words: HtmlValue): HtmlSafeString {
  return html`<p class="empty">${words}</p>`
}
