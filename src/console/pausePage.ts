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
import { instantHtml, notice, relativeTimeHtml, untrustedParagraphHtml, untrustedTextHtml } from './html/elements.ts'
import { formHtml, hiddenField, trimmedFieldText } from './html/form.ts'
import { type HtmlValue, html } from './html/html.ts'
import { type Page, renderPage, sendPage } from './html/layout.ts'
import type { ConsoleParts } from './parts.ts'

/** @param onChanged lets the Overview show the change at once */
export function addPauseRoutes(app: FastifyInstance, { databases, clock }: ConsoleParts, onChanged: () => void): void {
  app.get('/pause', async ({ viewer }, reply) => {
    const { ledger } = await databases()
    const standing = await readColleaguesPause(ledger, viewer.who)
    return sendPage(reply, renderPauseForm(standing, await readReachMessage(ledger), viewer, clock.nowMs()))
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

/** @param standing a colleague's pause that this one would replace */
function renderPauseForm(standing: OperatorPause | null, reach: string, viewer: Viewer, nowMs: number): Page {
  return renderPage({ title: 'Pause sending', current: '/', viewer }, [
    standing === null ? '' : notice('bad', untrustedParagraphHtml(colleaguesPauseMessage(standing, nowMs))),
    untrustedParagraphHtml(reach),
    html`<p>No instance sends or polls then. Requests under way finish, and new rows are still captured.</p>`,
    formHtml({ action: '/pause', viewer, class: 'confirm' }, [
      standing === null ? '' : hiddenField('replaces', String(standing.sinceMs)),
      html`<label>Why<input name="reason" maxlength="1000" required autofocus></label>
<label>For how long (until somebody resumes, if empty)<input name="for" placeholder="2h, 1h30m"></label>
<button class="main">${standing === null ? 'Pause now' : 'Replace that pause'}</button>
<a class="button" href="/" data-close>Cancel</a>`,
    ]),
    readOnlyNotice(viewer),
  ])
}

function renderResumePreview(would: readonly string[], { all }: ResumeTerms, viewer: Viewer): Page {
  return renderPage({ title: 'Resume', current: '/', viewer }, [
    would.map(untrustedParagraphHtml),
    formHtml({ action: '/resume', viewer, class: 'confirm' }, [
      all
        ? hiddenField('all', 'on')
        : html`<p><a href="/resume?all=on" data-dialog>Also send one request now</a>: if it succeeds, the daemon’s pause ends.</p>`,
      html`<label>Why, if there is a reason<input name="reason" maxlength="1000"></label>
<button class="main" autofocus>Resume now</button> <a class="button" href="/" data-close>Cancel</a>`,
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

type Pause = LedgerSnapshot['pauses'][number]

export const pausesHtml = (pauses: readonly Pause[], nowMs: number): HtmlValue =>
  pauses.map((pause) =>
    notice(
      'attention',
      html`<p><strong>Paused: ${pause.reason}</strong>, began ${relativeTimeHtml(pause.sinceMs, nowMs)}, ${endOf(pause, nowMs)}</p>
<p>${untrustedTextHtml(pause.detail, 400)}</p>`,
    ),
  )

function endOf(pause: Pause, nowMs: number): HtmlValue {
  const { untilMs } = pause
  if (untilMs === null || untilMs <= nowMs) return pauseEndText(pause, nowMs)
  return html`until ${instantHtml(untilMs)}, ${relativeTimeHtml(untilMs, nowMs)}`
}
