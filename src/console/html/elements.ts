import type { State } from '../../model/submission.ts'
import { escapeControl, truncateToOneLine } from '../../plainText.ts'
import { formatDuration, formatInstant, formatIsoInstant } from '../../time.ts'
import { type HtmlPart, type HtmlValue, html } from './html.ts'

/** What stands between backticks is shown as code. */
export function untrustedParagraphHtml(text: string): HtmlPart {
  const parts = cutAndEscapeText(text, 2_000).split('`')
  const isPaired = parts.length % 2 === 1
  const content = isPaired ? parts.map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part)) : parts.join('`')
  return html`<p class="foreign">${content}</p>`
}

export const section = (headingIdPrefix: string, title: HtmlValue, content: HtmlValue): HtmlPart =>
  html`<section aria-labelledby="${headingIdPrefix}-head"><h2 id="${headingIdPrefix}-head">${title}</h2>
${content}</section>`

const circle = 'M8 1.8a6.2 6.2 0 1 1 0 12.4a6.2 6.2 0 0 1 0-12.4z'
const iconPaths: Readonly<Record<State | 'outbox', string>> = {
  outbox: 'M8 10V2.5M5 5.2l3-2.7 3 2.7M2.5 9.5v4h11v-4',
  queued: `${circle}M8 4.8V8l2.2 1.4`,
  sending: 'M2.5 8h10.5M9 4l4 4-4 4',
  accepted: `${circle}M5.2 8h.01M8 8h.01M10.8 8h.01`,
  completed: `${circle}m-2.7 6.4 1.9 1.9 3.6-3.9`,
  uncertain: 'M8 2.4 14.2 13.2H1.8zM8 6.4v3.2M8 11.4h.01',
  failed: `${circle}M6 6l4 4m0-4-4 4`,
  rejected: 'M5.5 1.9h5l3.6 3.6v5l-3.6 3.6h-5l-3.6-3.6v-5zM5.3 8h5.4',
  discarded: 'M3 4.6h10M6.4 4.6V3h3.2v1.6M4.4 4.6l.7 8.6h5.8l.7-8.6',
}

/** Once on each page. */
export const iconSheet: HtmlPart = html`<svg class="icons">${Object.entries(iconPaths).map(
  ([name, path]) => html`<symbol id="icon-${name}" viewBox="0 0 16 16"><path d="${path}"/></symbol>`,
)}</svg>`

export const stateIcon = (name: State | 'outbox'): HtmlPart =>
  html`<svg class="icon ${name}" aria-hidden="true"><use href="#icon-${name}"/></svg>`

/** Colours alone do not tell states apart, so an icon and the word always stand. */
export const stateBadge = (state: State): HtmlPart =>
  html`<span class="state ${state}">${stateIcon(state)}${state}</span>`

export type Tone = 'good' | 'attention' | 'bad' | 'quiet'

export const notice = (tone: Tone, content: HtmlValue): HtmlPart => html`<div class="notice ${tone}">${content}</div>`

export const nothingToShow = (message: HtmlValue): HtmlPart => html`<p class="empty">${message}</p>`

export type Column = string | { words: HtmlValue } | { number: string }

/** Renders a table that scrolls sideways, also by keyboard. */
export function table(
  ariaLabel: string,
  columns: readonly Column[],
  rows: readonly (readonly HtmlValue[])[],
): HtmlPart {
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

export function descriptionListHtml(facts: readonly (readonly [name: HtmlValue, value: HtmlValue])[]): HtmlPart {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined)
  return html`<dl>${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`)}</dl>`
}

/** Renders a text of the ERP or the service: cut, on one line, control and direction characters escaped. */
export function untrustedTextHtml(text: string, charactersMax = 300): HtmlPart {
  return html`<span class="foreign${charactersMax > briefMax ? ' reason' : ''}">${cutAndEscapeText(text, charactersMax)}</span>`
}

const briefMax = 40

export const cutAndEscapeText = (text: string, charactersMax = 300): string =>
  escapeControl(truncateToOneLine(text, charactersMax))

/** In UTC, as all times in sentences and forms. */
export const instantHtml = (ms: number): HtmlPart =>
  html`<time datetime="${formatIsoInstant(ms)}">${formatInstant(ms)}</time>`

/** assets/console.js counts the age on. */
export function relativeTimeHtml(ms: number, nowMs: number): HtmlPart {
  const distance = ms <= nowMs ? `${formatDuration(nowMs - ms)} ago` : `in ${formatDuration(ms - nowMs)}`
  return html`<time data-age datetime="${formatIsoInstant(ms)}" title="${formatInstant(ms)}">${distance}</time>`
}
