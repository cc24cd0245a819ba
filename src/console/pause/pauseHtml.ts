import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import type { LedgerSnapshot } from '../../ledger/snapshot.ts'
import { type PauseRead, type PauseRequest, pauseMessage, type ResumeTerms } from '../../operations/pause.ts'
import { pauseEndText } from '../../operations/renderStatus.ts'
import type { Viewer } from '../guard/viewer.ts'
import { ageHtml, emptyNote, foreignTextHtml, momentHtml, notice, paragraph } from '../html/elements.ts'
import { checkbox, form, hiddenField } from '../html/form.ts'
import { layout } from '../html/layout.ts'

const fieldNames: Record<keyof PauseRequest, string> = { reason: 'why', for: 'for how long' }

function pauseFields({ reason, for: duration }: PauseRequest): HtmlSafeString {
  return html`<form class="line" action="/pause">
<label>why <input name="reason" maxlength="1000" required value="${reason ?? ''}"></label>
<label>for how long <input name="for" size="10" placeholder="2h, 1h30m" value="${duration ?? ''}"></label>
<button>Pause…</button>
</form>`
}

export function renderPausePreview(request: PauseRequest, read: PauseRead, viewer: Viewer, nowMs: number): string {
  if (read.kind === 'invalid') {
    const problems = read.problems.map(({ field, problem }) => html`<p>${fieldNames[field]}: ${problem}</p>`)
    return page('Pause', viewer, [notice('bad', problems), pauseFields(request)])
  }
  return page('Pause', viewer, [
    notice('attention', [
      paragraph(pauseMessage(read.forMs, { dryRun: true, nowMs })),
      html`<p>No instance sends or polls then. Requests under way finish, and new rows are still captured. A second pause replaces the first.</p>`,
      html`<p>Why: ${foreignTextHtml(read.reason, 1_000)}</p>`,
    ]),
    form({ action: '/pause', viewer }, [
      hiddenField('reason', read.reason),
      hiddenField('for', request.for ?? ''),
      html`<button class="main">Pause now</button> <a href="/">Cancel</a>`,
    ]),
    readOnlyNotice(viewer),
  ])
}

export function renderResumePreview(would: readonly string[], terms: ResumeTerms, viewer: Viewer): string {
  const chosen = (['all', 'believeRefusals'] as const)
    .filter((name) => terms[name])
    .map((name) => hiddenField(name, 'on'))
  const tickOf = (name: keyof ResumeTerms, words: string) => checkbox(name, words, { isOn: terms[name] })
  return page('Resume', viewer, [
    notice('attention', would.map(paragraph)),
    form({ action: '/resume', viewer }, [
      chosen,
      html`<label>why <input name="reason" maxlength="1000"></label> <button class="main">Resume now</button> <a href="/">Cancel</a>`,
    ]),
    readOnlyNotice(viewer),
    html`<h2>More</h2>
<form class="line" action="/resume">
${tickOf('all', 'end the other pauses, too, because their cause is gone')}
${tickOf('believeRefusals', 'the repeated refusal is right: reject these records, and for a day all that get the same one')}
<button>Preview</button>
</form>`,
  ])
}

const readOnlyNotice = ({ canChange }: Viewer): HtmlValue =>
  canChange
    ? ''
    : notice('quiet', paragraph('This console was started with --read-only: you cannot change anything here.'))

const page = (title: string, viewer: Viewer, main: HtmlValue): string =>
  layout({ title, current: '/', viewer }, html`<section>${main}</section>`)

type Pause = LedgerSnapshot['pauses'][number]

export function pausesSection(pauses: readonly Pause[], nowMs: number): HtmlSafeString {
  const standing: HtmlValue =
    pauses.length === 0 ? emptyNote('Nothing is paused.') : pauses.map((pause) => pauseHtml(pause, nowMs))
  return html`<h2>Pauses</h2>${standing}`
}

function pauseHtml(pause: Pause, nowMs: number): HtmlSafeString {
  return notice(
    'attention',
    html`<p><strong>${pause.reason}</strong>, began ${ageHtml(pause.sinceMs, nowMs)}, ${endOf(pause, nowMs)}</p>
<p>${foreignTextHtml(pause.detail, 400)}</p>`,
  )
}

function endOf(pause: Pause, nowMs: number): HtmlValue {
  const { untilMs } = pause
  if (untilMs === null || untilMs <= nowMs) return pauseEndText(pause, nowMs)
  return html`until ${momentHtml(untilMs)}, ${ageHtml(untilMs, nowMs)}`
}

export function pauseForms({ canChange }: Viewer): HtmlValue {
  if (!canChange) return ''
  return html`${pauseFields({ reason: undefined, for: undefined })}
<form class="line" action="/resume"><button>Resume…</button></form>`
}
