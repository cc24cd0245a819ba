import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'

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
