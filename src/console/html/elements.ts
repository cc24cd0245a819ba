import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import { escapeControl, truncateToOneLine } from '../../plainText.ts'
import { formatDuration, formatInstant, formatIsoInstant } from '../../time.ts'

export const untrustedParagraphHtml = (text: string): HtmlSafeString =>
  html`<p class="foreign">${cutAndEscapeText(text, 2_000)}</p>`

export const section = (headingIdPrefix: string, title: HtmlValue, content: HtmlValue): HtmlSafeString =>
  html`<section aria-labelledby="${headingIdPrefix}-head"><h2 id="${headingIdPrefix}-head">${title}</h2>
${content}</section>`

export type Tone = 'good' | 'attention' | 'bad' | 'quiet'

export const notice = (tone: Tone, content: HtmlValue): HtmlSafeString =>
  html`<div class="notice ${tone}">${content}</div>`

export const nothingToShow = (message: HtmlValue): HtmlSafeString => html`<p class="empty">${message}</p>`

export type Column = string | { words: HtmlValue } | { number: string }

/** Renders a table that scrolls sideways, also by keyboard. */
export function table(
  ariaLabel: string,
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
  return html`<div class="table" role="region" aria-label="${ariaLabel}" tabindex="0"><table>
<thead><tr>${heads.map(({ words, kind }) => html`<th scope="col" class="${kind}">${words}</th>`)}</tr></thead>
<tbody>${body}</tbody>
</table></div>`
}

export function descriptionListHtml(facts: readonly (readonly [name: HtmlValue, value: HtmlValue])[]): HtmlSafeString {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined)
  return html`<dl>${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`)}</dl>`
}

/** Renders a text of the ERP or the service: cut, on one line, control and direction characters escaped. */
export function untrustedTextHtml(text: string, charactersMax = 300): HtmlSafeString {
  return html`<span class="foreign${charactersMax > briefMax ? ' reason' : ''}">${cutAndEscapeText(text, charactersMax)}</span>`
}

const briefMax = 40

export const cutAndEscapeText = (text: string, charactersMax = 300): string =>
  escapeControl(truncateToOneLine(text, charactersMax))

/** In UTC, as all times in sentences and forms. */
export const instantHtml = (ms: number): HtmlSafeString =>
  html`<time datetime="${formatIsoInstant(ms)}">${formatInstant(ms)}</time>`

/** assets/console.js counts the age on. */
export function relativeTimeHtml(ms: number, nowMs: number): HtmlSafeString {
  const distance = ms <= nowMs ? `${formatDuration(nowMs - ms)} ago` : `in ${formatDuration(ms - nowMs)}`
  return html`<time data-age datetime="${formatIsoInstant(ms)}" title="${formatInstant(ms)}">${distance}</time>`
}
