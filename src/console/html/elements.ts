import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import { escapeControl, truncate } from '../../plainText.ts'
import { isoTime, showDuration, showTime } from '../../time.ts'

/** A sentence of ours, as the commands say it; it may quote the ERP or the service. */
export const paragraph = (text: string): HtmlSafeString => html`<p class="foreign">${foreignText(text, 2_000)}</p>`

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

/** A column's head; `number` aligns to the right, with digits of one width. */
export interface Column {
  words: HtmlValue
  kind?: 'text' | 'number'
}

/**
 * A table that can be scrolled sideways, by keyboard, too, where the screen is narrow.
 *
 * @param name what it is a table of, for those who cannot see it
 */
export function table(
  name: string,
  columns: readonly Column[],
  rows: readonly (readonly HtmlValue[])[],
): HtmlSafeString {
  const kinds = columns.map(({ kind }) => (kind === 'number' ? 'number' : 'text'))
  const heads = columns.map(({ words }, i) => html`<th scope="col" class="${kinds[i]}">${words}</th>`)
  const body = rows.map(
    (cells) => html`<tr>${cells.map((cell, i) => html`<td class="${kinds[i]}">${cell}</td>`)}</tr>\n`,
  )
  return html`<div class="table" role="region" aria-label="${name}" tabindex="0"><table>
<thead><tr>${heads}</tr></thead>
<tbody>${body}</tbody>
</table></div>`
}

/** Names and what they are, such as a record's facts; a null is left out. */
export function factList(facts: readonly (readonly [name: string, value: HtmlValue])[]): HtmlSafeString {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined)
  return html`<dl>${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`)}</dl>`
}

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

/** A moment: in the viewer's zone where there is a script, with UTC on hover, and in UTC without one. */
export function moment(ms: number): HtmlSafeString {
  return html`<time datetime="${isoTime(ms)}" title="${showTime(ms)}">${showTime(ms)}</time>`
}

/** The same by how long ago it was or how far it is, with both moments on hover. */
export function age(ms: number, nowMs: number): HtmlSafeString {
  const distance = ms <= nowMs ? `${showDuration(nowMs - ms)} ago` : `in ${showDuration(ms - nowMs)}`
  return html`<time data-age datetime="${isoTime(ms)}" title="${showTime(ms)}">${distance}</time>`
}
