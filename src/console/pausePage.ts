import type { FastifyInstance } from 'fastify'
import { raiseOperatorPause } from '../ledger/pauses.ts'
import type { LedgerSnapshot } from '../ledger/snapshot.ts'
import { createOperator } from '../operations/databases.ts'
import {
  colleaguesPauseMessage,
  parsePauseRequest,
  previewResume,
  readColleaguesPause,
  readReachMessage,
  resumeMessages,
  resumeSending,
} from '../operations/pause.ts'
import { pauseEndText } from '../operations/renderStatus.ts'
import { RequestRefused, refuseWrongFields } from './errors.ts'
import { instantHtml, notice, relativeTimeHtml, untrustedLinesHtml, untrustedTextHtml } from './html/elements.ts'
import { confirmFormHtml, hiddenField, readReason, reasonField, trimmedFieldText } from './html/form.ts'
import { type HtmlValue, html } from './html/html.ts'
import { sendPage } from './html/layout.ts'
import type { ConsoleParts } from './parts.ts'

/** @param onChanged lets the Overview show the change at once */
export function addPauseRoutes(app: FastifyInstance, { databases, clock }: ConsoleParts, onChanged: () => void): void {
  app.get('/pause', async ({ viewer }, reply) => {
    const { ledger } = await databases()
    const standing = await readColleaguesPause(ledger, viewer.who)
    return sendPage(reply, { title: 'Pause sending' }, [
      standing === null ? '' : notice('bad', colleaguesPauseMessage(standing, clock.nowMs())),
      untrustedLinesHtml(await readReachMessage(ledger)),
      html`<p>No instance sends or polls then. Requests under way finish, and new rows are still captured.</p>`,
      confirmFormHtml({ action: '/pause', viewer, back: '/' }, [
        standing === null ? '' : hiddenField('replaces', String(standing.sinceMs)),
        html`<label>Why<input name="reason" maxlength="1000" required autofocus></label>
<label>For how long (until somebody resumes, if empty)<input name="for" placeholder="2h, 1h30m"></label>
<button class="main">${standing === null ? 'Pause now' : 'Replace that pause'}</button>`,
      ]),
    ])
  })

  app.post('/pause', async ({ viewer, body }, reply) => {
    const given = { reason: trimmedFieldText(body, 'reason'), for: trimmedFieldText(body, 'for') }
    const problems: string[] = []
    const asked = parsePauseRequest(given, problems)
    refuseWrongFields(problems)
    const opened = await databases()
    const standing = await readColleaguesPause(opened.ledger, viewer.who)
    if (standing !== null && trimmedFieldText(body, 'replaces') !== String(standing.sinceMs))
      throw new RequestRefused(
        409,
        `${colleaguesPauseMessage(standing, clock.nowMs())} Nothing was changed: ask for the pause again.`,
      )
    await raiseOperatorPause(createOperator(opened, { who: viewer.who, reason: asked.reason }), asked.forMs)
    onChanged()
    return reply.redirect('/', 303)
  })

  app.get('/resume', async ({ viewer, query }, reply) => {
    const terms = resumeTerms(query)
    const { ledger } = await databases()
    const would = await previewResume(ledger, terms)
    return sendPage(reply, { title: 'Resume' }, [
      resumeMessages(would, { ...terms, dryRun: true, nowMs: clock.nowMs() }).map(untrustedLinesHtml),
      untrustedLinesHtml(await readReachMessage(ledger)),
      confirmFormHtml({ action: '/resume', viewer, back: '/' }, [
        terms.all ? hiddenField('all', 'on') : alsoSendOne,
        reasonField,
        html`<button class="main" autofocus>Resume now</button>`,
      ]),
    ])
  })

  app.post('/resume', async ({ viewer, body }, reply) => {
    const actor = { who: viewer.who, reason: readReason(body) }
    await resumeSending(createOperator(await databases(), actor), resumeTerms(body))
    onChanged()
    return reply.redirect('/', 303)
  })
}

const resumeTerms = (fields: unknown) => ({ all: trimmedFieldText(fields, 'all') !== undefined })

const alsoSendOne = html`<p><a href="/resume?all=on" data-dialog>Also send one request now</a>: if it succeeds, the daemon’s pause ends.</p>`

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
