import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import { pauseEnd } from '../../cli/renderStatus.ts'
import type { LedgerSnapshot } from '../../ledger/snapshot.ts'
import type { Viewer } from '../guard/viewer.ts'
import { advice } from '../html/advice.ts'
import { foreign } from '../html/foreign.ts'
import { empty, notice } from '../html/notice.ts'
import { age, moment } from '../html/time.ts'
import { pauseFields } from './pauseHtml.ts'

type Pause = LedgerSnapshot['pauses'][number]

/** The pauses that stand, each with its reason and its end. */
export function pausesSection(pauses: readonly Pause[], nowMs: number): HtmlSafeString {
  const standing: HtmlValue =
    pauses.length === 0 ? empty('Nothing is paused.') : pauses.map((pause) => pauseHtml(pause, nowMs))
  return html`<h2>Pauses</h2>${standing}`
}

function pauseHtml(pause: Pause, nowMs: number): HtmlSafeString {
  return notice(
    'attention',
    html`<p><strong>${pause.reason}</strong>, begun ${age(pause.sinceMs, nowMs)}, ${endOf(pause, nowMs)}</p>
<p>${foreign(pause.detail, 400)}</p>`,
  )
}

function endOf(pause: Pause, nowMs: number): HtmlValue {
  const { untilMs } = pause
  if (untilMs === null || untilMs <= nowMs) return advice(pauseEnd(pause, nowMs), pause)
  return html`until ${moment(untilMs)}, ${age(untilMs, nowMs)}`
}

/** Whether somebody may pause or resume, how: each leads to a page that says what it would do. */
export function pauseForms({ canChange }: Viewer): HtmlValue {
  if (!canChange) return ''
  return html`${pauseFields({ reason: undefined, for: undefined })}
<form class="line" action="/resume"><button>Resume…</button></form>`
}
