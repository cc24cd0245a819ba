import type { State } from '../../model/submission.ts'
import { escapeControl, truncateToOneLine } from '../../plainText.ts'
import { formatDuration, formatInstant, formatIsoInstant } from '../../time.ts'
import { type HtmlPart, type HtmlValue, html } from './html.ts'

/** A paragraph for each line. */
export const untrustedLinesHtml = (text: string): HtmlPart[] =>
  text.split('\n').map((line) => html`<p class="foreign">${textWithCode(line.trim())}</p>`)

/** What stands between backticks is shown as code. */
export function textWithCode(text: string): HtmlValue {
  const parts = cutAndEscapeText(text, 2_000).split('`')
  const isPaired = parts.length % 2 === 1
  return isPaired ? parts.map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part)) : parts.join('`')
}

/** A part that changes while the page is shown (`live` in layout.ts). */
export const liveHtml = (id: string, content: HtmlValue): HtmlPart => html`<div id="${id}" data-live>${content}</div>`

export const section = (headingIdPrefix: string, title: HtmlValue, content: HtmlValue): HtmlPart =>
  html`<section aria-labelledby="${headingIdPrefix}-head"><h2 id="${headingIdPrefix}-head">${title}</h2>
${content}</section>`

const circle = 'M8 1.8a6.2 6.2 0 1 1 0 12.4a6.2 6.2 0 0 1 0-12.4z'
const iconPaths = {
  outbox: 'M8 10V2.5M5 5.2l3-2.7 3 2.7M2.5 9.5v4h11v-4',
  overview: 'M2.5 7.5 8 2.5l5.5 5v6h-4V9.5h-3v4h-4z',
  records: 'M2.5 4h.01M2.5 8h.01M2.5 12h.01M5.5 4h8M5.5 8h8M5.5 12h8',
  activity: 'M3 2.5h10v11H3zM5.5 6h5M5.5 8.5h5M5.5 11h3',
  mapping: 'M2 4.5h3.5l4 7H14M9.5 4.5H14',
  system:
    'M8 5.8a2.2 2.2 0 1 1 0 4.4a2.2 2.2 0 0 1 0-4.4zM8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6 5 5M11 11l1.4 1.4M12.4 3.6 11 5M5 11l-1.4 1.4',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 0 1 0-9zM10.3 10.3 13.5 13.5',
  queued: `${circle}M8 4.8V8l2.2 1.4`,
  sending: 'M2.5 8h10.5M9 4l4 4-4 4',
  accepted: `${circle}M5.2 8h.01M8 8h.01M10.8 8h.01`,
  completed: `${circle}m-2.7 6.4 1.9 1.9 3.6-3.9`,
  uncertain: 'M8 2.4 14.2 13.2H1.8zM8 6.4v3.2M8 11.4h.01',
  failed: `${circle}M6 6l4 4m0-4-4 4`,
  rejected: 'M5.5 1.9h5l3.6 3.6v5l-3.6 3.6h-5l-3.6-3.6v-5zM5.3 8h5.4',
  discarded: 'M3 4.6h10M6.4 4.6V3h3.2v1.6M4.4 4.6l.7 8.6h5.8l.7-8.6',
} as const satisfies Readonly<Record<State, string>> & Readonly<Record<string, string>>
export type IconName = keyof typeof iconPaths

/** Once on each page. */
export const iconSheet: HtmlPart = html`<svg class="icons">${Object.entries(iconPaths).map(
  ([name, path]) => html`<symbol id="icon-${name}" viewBox="0 0 16 16"><path d="${path}"/></symbol>`,
)}</svg>`

export const icon = (name: IconName): HtmlPart =>
  html`<svg class="icon ${name}" aria-hidden="true"><use href="#icon-${name}"/></svg>`

/** Colours alone do not tell states apart, so an icon and the word always stand. */
export const stateBadge = (state: State): HtmlPart =>
  html`<span class="state ${state}"><svg><use href="#icon-${state}"/></svg>${state}</span>`

export type Tone = 'good' | 'attention' | 'bad' | 'quiet'

/** @param content a text becomes a paragraph for each of its lines */
export const notice = (tone: Tone, content: HtmlValue): HtmlPart =>
  html`<div class="notice ${tone}">${typeof content === 'string' ? untrustedLinesHtml(content) : content}</div>`

export const nothingToShow = (message: HtmlValue): HtmlPart => html`<p class="empty">${message}</p>`

export type Column = string | { words: string; kind: 'number' | 'key' | 'badge' | 'tick' | 'why' | 'since' }

/** Renders a table, whose rows are cards on a phone. */
export function table(
  ariaLabel: string,
  columns: readonly Column[],
  rows: readonly (readonly HtmlValue[])[],
  kind: 'facts' | 'records' = 'facts',
): HtmlPart {
  const heads = columns.map((column) => (typeof column === 'string' ? { words: column, kind: null } : column))
  const classOf = (kind: string | null | undefined) => (kind ? html` class="${kind}"` : '')
  // A card of a record needs no labels: they would be a tenth of the page.
  const labelOf = (words: string | undefined) => (kind === 'facts' ? html` data-label="${words}"` : '')
  const body = rows.map(
    (cells) =>
      html`<tr>${cells.map((cell, i) => html`<td${classOf(heads[i]?.kind)}${labelOf(heads[i]?.words)}>${cell}</td>`)}</tr>\n`,
  )
  return html`<table aria-label="${ariaLabel}" class="${kind}">
<thead><tr>${heads.map(({ words, kind }) => html`<th scope="col"${classOf(kind)}>${words}</th>`)}</tr></thead>
<tbody>${body}</tbody>
</table>`
}

export function descriptionListHtml(facts: readonly (readonly [name: HtmlValue, value: HtmlValue])[]): HtmlPart {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined)
  return html`<dl>${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`)}</dl>`
}

/** Renders a text of the ERP or the service: cut, on one line, control and direction characters escaped. */
export const untrustedTextHtml = (text: string, charactersMax = 300): HtmlPart =>
  html`<bdi>${cutAndEscapeText(text, charactersMax)}</bdi>`

export const cutAndEscapeText = (text: string, charactersMax = 300): string =>
  escapeControl(truncateToOneLine(text, charactersMax))

/** In UTC, as all times in sentences and forms. */
export const instantHtml = (ms: number): HtmlPart =>
  html`<time datetime="${formatIsoInstant(ms)}">${formatInstant(ms)}</time>`

/** assets/console.js counts the age on, and shows the time on hover. */
export function relativeTimeHtml(ms: number, nowMs: number): HtmlPart {
  const distance = ms <= nowMs ? `${formatDuration(nowMs - ms)} ago` : `in ${formatDuration(ms - nowMs)}`
  return html`<time data-age datetime="${formatIsoInstant(ms)}">${distance}</time>`
}
