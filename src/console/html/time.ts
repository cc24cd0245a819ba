import { type HtmlSafeString, html } from '@prairielearn/html'
import { isoTime, showDuration, showTime } from '../../cli/time.ts'

/** A moment: in the viewer's zone where there is a script, with UTC on hover, and in UTC without one. */
export function moment(ms: number): HtmlSafeString {
  return html`<time datetime="${isoTime(ms)}" title="${showTime(ms)}">${showTime(ms)}</time>`
}

/** The same by how long ago it was or how far it is, with both moments on hover. */
export function age(ms: number, nowMs: number): HtmlSafeString {
  const distance = ms <= nowMs ? `${showDuration(nowMs - ms)} ago` : `in ${showDuration(ms - nowMs)}`
  return html`<time data-age datetime="${isoTime(ms)}" title="${showTime(ms)}">${distance}</time>`
}
