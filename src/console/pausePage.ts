import type { FastifyInstance } from 'fastify'
import { type OperatorPause, raiseOperatorPause } from '../ledger/pauses.ts'
import type { LedgerSnapshot } from '../ledger/snapshot.ts'
import { findReasonProblemClause } from '../operations/actor.ts'
import { createOperator } from '../operations/databases.ts'
import {
  colleaguesPauseMessage,
  type ParsedPauseRequest,
  type PauseRequest,
  parsePauseRequest,
  pauseMessage,
  previewResume,
  type ResumeTerms,
  readColleaguesPause,
  readReachMessage,
  resumeMessages,
  resumeSending,
} from '../operations/pause.ts'
import { pauseEndText } from '../operations/renderStatus.ts'
import { RequestRefused } from './errors.ts'
import type { Viewer } from './guard/viewer.ts'
import {
  instantHtml,
  nothingToShow,
  notice,
  relativeTimeHtml,
  untrustedParagraphHtml,
  untrustedTextHtml,
} from './html/elements.ts'
import { checkbox, formHtml, hiddenField, trimmedFieldText } from './html/form.ts'
import { type HtmlPart, type HtmlValue, html } from './html/html.ts'
import { type Page, renderPage, sendPage } from './html/layout.ts'
import type { ConsoleParts } from './parts.ts'

/** @param onChanged lets the Overview show the change at once */
export function addPauseRoutes(app: FastifyInstance, { databases, clock }: ConsoleParts, onChanged: () => void): void {
  app.get('/pause', async ({ viewer, query }, reply) => {
    const { ledger } = await databases()
    const standing = await readColleaguesPause(ledger, viewer.who)
    const reach = await readReachMessage(ledger)
    const form = { ...readPauseForm(query), duration: trimmedFieldText(query, 'for') ?? '', standing, reach }
    return sendPage(reply, renderPausePreview(form, viewer, clock.nowMs()))
  })

  app.post('/pause', async ({ viewer, body }, reply) => {
    const { reason, forMs } = readPauseForm(body)
    const opened = await databases()
    const standing = await readColleaguesPause(opened.ledger, viewer.who)
    if (standing !== null && trimmedFieldText(body, 'replaces') !== String(standing.sinceMs))
      throw new RequestRefused(
        409,
        `${colleaguesPauseMessage(standing, clock.nowMs())} Nothing was changed: ask for the pause again.`,
      )
    await raiseOperatorPause(createOperator(opened, { who: viewer.who, reason }), forMs)
    onChanged()
    return reply.redirect('/', 303)
  })

  app.get('/resume', async ({ viewer, query }, reply) => {
    const terms = resumeTerms(query)
    const would = await previewResume((await databases()).ledger, terms)
    const lines = resumeMessages(would, { ...terms, dryRun: true, nowMs: clock.nowMs() })
    return sendPage(reply, renderResumePreview(lines, terms, viewer))
  })

  app.post('/resume', async ({ viewer, body }, reply) => {
    const reason = trimmedFieldText(body, 'reason') ?? null
    const wrong = reason === null ? null : findReasonProblemClause(reason)
    if (wrong !== null) throw new RequestRefused(400, `The reason ${wrong}: nothing was changed.`)
    await resumeSending(createOperator(await databases(), { who: viewer.who, reason }), resumeTerms(body))
    onChanged()
    return reply.redirect('/', 303)
  })
}

const fieldNames: Record<keyof PauseRequest, string> = { reason: 'why', for: 'for how long' }

function readPauseForm(fields: unknown): Extract<ParsedPauseRequest, { kind: 'value' }> {
  const read = parsePauseRequest({ reason: trimmedFieldText(fields, 'reason'), for: trimmedFieldText(fields, 'for') })
  if (read.kind === 'value') return read
  throw new RequestRefused(
    400,
    read.problems.map(({ field, problem }) => `${fieldNames[field]}: ${problem}`).join('\n'),
  )
}

const resumeTerms = (fields: unknown): ResumeTerms => ({
  all: trimmedFieldText(fields, 'all') !== undefined,
})

interface PauseForm extends Extract<ParsedPauseRequest, { kind: 'value' }> {
  /** As typed. */
  duration: string
  /** A colleague's pause that this one would replace. */
  standing: OperatorPause | null
  /** Says how many daemons it reaches. */
  reach: string
}

function renderPausePreview(
  { reason, forMs, duration, standing, reach }: PauseForm,
  viewer: Viewer,
  nowMs: number,
): Page {
  return page('Pause', viewer, [
    standing === null ? '' : notice('bad', untrustedParagraphHtml(colleaguesPauseMessage(standing, nowMs))),
    notice('attention', [
      untrustedParagraphHtml(pauseMessage(forMs, { dryRun: true, nowMs })),
      untrustedParagraphHtml(reach),
      html`<p>No instance sends or polls then. Requests under way finish, and new rows are still captured.</p>`,
      html`<p>Why: ${untrustedTextHtml(reason, 1_000)}</p>`,
    ]),
    formHtml({ action: '/pause', viewer }, [
      hiddenField('reason', reason),
      hiddenField('for', duration),
      standing === null ? '' : hiddenField('replaces', String(standing.sinceMs)),
      html`<button class="main">${standing === null ? 'Pause now' : 'Replace that pause'}</button> <a href="/">Cancel</a>`,
    ]),
    readOnlyNotice(viewer),
  ])
}

function renderResumePreview(would: readonly string[], terms: ResumeTerms, viewer: Viewer): Page {
  const chosen = terms.all ? hiddenField('all', 'on') : ''
  return page('Resume', viewer, [
    notice('attention', would.map(untrustedParagraphHtml)),
    formHtml({ action: '/resume', viewer }, [
      chosen,
      html`<label>why <input name="reason" maxlength="1000"></label> <button class="main">Resume now</button> <a href="/">Cancel</a>`,
    ]),
    readOnlyNotice(viewer),
  ])
}

const readOnlyNotice = ({ canChange }: Viewer): HtmlValue =>
  canChange
    ? ''
    : notice(
        'quiet',
        untrustedParagraphHtml('This console was started with --read-only: you cannot change anything here.'),
      )

const page = (title: string, viewer: Viewer, main: HtmlValue): Page =>
  renderPage({ title, current: '/', viewer }, html`<section>${main}</section>`)

type Pause = LedgerSnapshot['pauses'][number]

export function pausesSection(pauses: readonly Pause[], nowMs: number): HtmlPart {
  const standing: HtmlValue =
    pauses.length === 0 ? nothingToShow('Nothing is paused.') : pauses.map((pause) => pauseHtml(pause, nowMs))
  return html`<h2>Pauses</h2>${standing}`
}

function pauseHtml(pause: Pause, nowMs: number): HtmlPart {
  return notice(
    'attention',
    html`<p><strong>${pause.reason}</strong>, began ${relativeTimeHtml(pause.sinceMs, nowMs)}, ${endOf(pause, nowMs)}</p>
<p>${untrustedTextHtml(pause.detail, 400)}</p>`,
  )
}

function endOf(pause: Pause, nowMs: number): HtmlValue {
  const { untilMs } = pause
  if (untilMs === null || untilMs <= nowMs) return pauseEndText(pause, nowMs)
  return html`until ${instantHtml(untilMs)}, ${relativeTimeHtml(untilMs, nowMs)}`
}

export function pauseForms({ canChange }: Viewer): HtmlValue {
  if (!canChange) return ''
  return html`<form class="line" action="/pause">
<label>why <input name="reason" maxlength="1000" required></label>
<label>for how long <input name="for" size="10" placeholder="2h, 1h30m"></label>
<button>Pause…</button>
</form>
<form class="line" action="/resume">
${checkbox('all', 'also send one request now: if it succeeds, the daemon’s pause ends')}
<button>Resume…</button>
</form>`
}
