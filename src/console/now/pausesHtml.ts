import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import { pauseEnd } from '../../cli/renderStatus.ts'
import { truncate } from '../../cli/table.ts'
import type { LedgerSnapshot } from '../../ledger/snapshot.ts'
import type { Viewer } from '../guard/viewer.ts'
import { empty, notice } from '../html/notice.ts'
import { age } from '../html/time.ts'
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
    html`<p><strong>${pause.reason}</strong> since ${age(pause.sinceMs, nowMs)}, ${pauseEnd(pause, nowMs)}</p>
<p class="foreign">${truncate(pause.detail, 400)}</p>`,
  )
}

/** Whether somebody may pause or resume, how: each leads to a page that says what it would do. */
export function pauseForms({ canChange }: Viewer): HtmlValue {
  if (!canChange) return ''
  return html`${pauseFields({ reason: undefined, for: undefined })}
<form class="line" action="/resume"><button>Resume…</button></form>`
}
