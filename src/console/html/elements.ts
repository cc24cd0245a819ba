import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import { escapeControl, truncate } from '../../plainText.ts'
import { isoTime, showDuration, showTime } from '../../time.ts'

/** A sentence as the commands say it; it may quote the ERP or the service. */
export const paragraph = (text: string): HtmlSafeString => html`<p class="foreign">${foreignText(text, 2_000)}</p>`

/** A part of a page with its heading; links lead to `ID-head`. */
export const section = (id: string, title: HtmlValue, content: HtmlValue): HtmlSafeString =>
  html`<section aria-labelledby="${id}-head"><h2 id="${id}-head">${title}</h2>
${content}</section>`

export type Tone = 'good' | 'attention' | 'bad' | 'quiet'

/** Sentences that stand out. A sign says the tone as well, for those who do not see colours. */
export const notice = (tone: Tone, words: HtmlValue): HtmlSafeString => html`<div class="notice ${tone}">${words}</div>`

/** Says that there is nothing to show, and what to do then. */
export const empty = (words: HtmlValue): HtmlSafeString => html`<p class="empty">${words}</p>`

/** A column's head; a number is aligned to the right. */
export type Column = string | { words: HtmlValue } | { number: string }

/**
 * A table that can be scrolled sideways on a narrow screen, by keyboard, too.
 *
 * @param name what it is a table of, for screen readers
 */
export function table(
  name: string,
  columns: readonly Column[],
  rows: readonly (readonly HtmlValue[])[],
): HtmlSafeString {
  const heads = columns.map((column) => {
    if (typeof column === 'string') return { words: column, kind: 'text' }
    return 'number' in column ? { words: column.number, kind: 'number' } : { ...column, kind: 'text' }
  })
  const body = rows.map(
    (cells) => html`<tr>${cells.map((cell, i) => html`<td class="${heads[i]?.kind}">${cell}</td>`)}</tr>\n`,
  )
  return html`<div class="table" role="region" aria-label="${name}" tabindex="0"><table>
<thead><tr>${heads.map(({ words, kind }) => html`<th scope="col" class="${kind}">${words}</th>`)}</tr></thead>
<tbody>${body}</tbody>
</table></div>`
}

/** Names with their values; a value that is null is left out. */
export function factList(facts: readonly (readonly [name: HtmlValue, value: HtmlValue])[]): HtmlSafeString {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined)
  return html`<dl>${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`)}</dl>`
}

/**
 * A text that the ERP or the service wrote, on one line and cut. Control characters, and those that turn the direction of writing,
 * are shown as escapes.
 */
export function foreign(text: string, charactersMax = 300): HtmlSafeString {
  return html`<span class="foreign${charactersMax > briefMax ? ' reason' : ''}">${foreignText(text, charactersMax)}</span>`
}

/** A table's column of longer texts is as wide as a few words, however narrow the screen. */
const briefMax = 40

/** The same for an attribute. */
export const foreignText = (text: string, charactersMax = 300): string => escapeControl(truncate(text, charactersMax))

/** A moment: with a script in the viewer's zone, with UTC on hover; without a script in UTC. */
export const moment = (ms: number): HtmlSafeString =>
  html`<time datetime="${isoTime(ms)}" title="${showTime(ms)}">${showTime(ms)}</time>`

/** A moment by how long ago it was, or how far ahead it is, with the moment on hover. */
export function age(ms: number, nowMs: number): HtmlSafeString {
  const distance = ms <= nowMs ? `${showDuration(nowMs - ms)} ago` : `in ${showDuration(ms - nowMs)}`
  return html`<time data-age datetime="${isoTime(ms)}" title="${showTime(ms)}">${distance}</time>`
}
