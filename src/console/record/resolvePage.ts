import type { FastifyInstance } from 'fastify'
import { findReasonProblemClause } from '../../operations/actor.ts'
import { createOperator } from '../../operations/databases.ts'
import { discardRules } from '../../operations/discard.ts'
import { replayableStates } from '../../operations/replay.ts'
import {
  findResolveOptionProblems,
  previewResolution,
  type ResolveAnswer,
  resolveSubmission,
  whyCannotBeSettledSuffix,
} from '../../operations/resolve.ts'
import { RequestRefused } from '../errors.ts'
import type { Viewer } from '../guard/viewer.ts'
import { notice, untrustedParagraphHtml } from '../html/elements.ts'
import { checkbox, formHtml, hiddenField, optionalHiddenField, optionLabel, trimmedFieldText } from '../html/form.ts'
import { type HtmlValue, html } from '../html/html.ts'
import { renderPage, sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import type { FormFields } from '../records/recordsQuery.ts'
import type { RecordPageData } from './readRecord.ts'

/** Settles a record after a preview, if the record is as its page showed it. */
export function addResolveRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  app.post<{ Params: { id: string }; Body: FormFields }>('/records/:id/resolve', async (request, reply) => {
    const { viewer, params, body: fields } = request
    const isConfirmed = fields.confirmed !== undefined
    const show = (title: string, content: HtmlValue) =>
      sendPage(reply, renderPage({ title, current: '/records', viewer }, content))
    const form = (content: HtmlValue) =>
      formHtml(
        { action: `/records/${encodeURIComponent(params.id)}/resolve`, viewer, class: 'confirm', isDialog: true },
        [
          ['revision', 'answer'].map((name) => optionalHiddenField(fields, name)),
          content,
          html`<a class="button" href="/records/${encodeURIComponent(params.id)}" data-close>Cancel</a>`,
        ],
      )
    const answer = answerOf(fields)
    if (answer.arrived === '' && !isConfirmed) return show('It arrived', form(transactionFields))
    const reason = trimmedFieldText(fields, 'reason') ?? null
    const wrongReason = reason === null ? null : findReasonProblemClause(reason)
    const problems = [
      ...findResolveOptionProblems(answer),
      ...(wrongReason === null ? [] : [`the reason ${wrongReason}`]),
    ]
    if (problems.length > 0) throw new RequestRefused(409, `${problems.join('\n')}.`)
    const databases = await parts.databases()
    const found = await previewResolution(databases, params.id, answer)
    if (found.kind !== 'found') throw new RequestRefused(409, `There is no record ${params.id}.`)
    const { settling, outcome: would, question } = found
    const { id, outboxId, revision } = settling.submission
    if (String(revision) !== fields.revision)
      throw new RequestRefused(
        409,
        `outbox:${outboxId} has changed since this page was loaded, so nothing was done. Load the page again.`,
      )
    if (would.kind === 'left') throw new RequestRefused(409, would.reason)
    if (!isConfirmed)
      return show(confirmWords(answer), [
        untrustedParagraphHtml(would.message),
        question === null ? '' : notice('attention', untrustedParagraphHtml(question.text)),
        form([
          ['transaction', 'unchecked'].map((name) => optionalHiddenField(fields, name)),
          hiddenField('confirmed', 'on'),
          answer.notArrived ? checkbox('new-key', optionLabel('new-key'), { isOn: answer.newKey }) : '',
          html`<label>Reason, if there is one<input name="reason" maxlength="1000"></label>
<button class="main" autofocus>${confirmWords(answer)}</button>`,
        ]),
      ])
    const operator = createOperator(databases, { who: viewer.who, reason })
    const asking = { operator, askService: parts.askService, onServiceAnswer: () => {} }
    const outcome = await resolveSubmission(asking, settling, answer)
    if (outcome.kind === 'left') throw new RequestRefused(409, outcome.reason)
    return reply.redirect(`/records/${id}`, 303)
  })
}

const transactionFields = html`<p>The service has it, under an id of its own. outboxd asks for this id and tracks it to its end.</p>
<label>Its transaction or order id<input name="transaction" required maxlength="500" autocomplete="off" autofocus></label>
${checkbox('unchecked', optionLabel('unchecked'))}<button class="main">Continue…</button>`

function answerOf(fields: FormFields): ResolveAnswer {
  const { answer } = fields
  return {
    arrived: answer === 'arrived' ? (trimmedFieldText(fields, 'transaction') ?? '') : undefined,
    notArrived: answer === 'not-arrived',
    takeBack: answer === 'take-back',
    unchecked: fields.unchecked !== undefined,
    newKey: fields['new-key'] !== undefined,
  }
}

function confirmWords({ arrived, notArrived }: ResolveAnswer): string {
  if (arrived !== undefined) return 'It arrived'
  return notArrived ? 'It did not arrive: send it again' : 'Take the id back'
}

/** Where nobody knows what is right, no button is the main one, because it would suggest the answer. */
export function actionsHtml({ detail, submission }: RecordPageData, viewer: Viewer): HtmlValue {
  const canSettle = whyCannotBeSettledSuffix(detail) === null
  const canReplay = replayableStates.includes(detail.state)
  const canDiscard = discardRules.allowedStates.includes(detail.state)
  const isClear = !detail.mayHaveArrived && detail.conflict === null
  const settle = [
    // By the revision, a record that changed after the page was loaded is refused.
    hiddenField('revision', String(submission.revision)),
    canSettle ? html`<button name="answer" value="arrived">It arrived…</button>` : '',
    canSettle ? html`<button name="answer" value="not-arrived">It did not arrive…</button>` : '',
    detail.idByPerson ? html`<button name="answer" value="take-back">Take the id back…</button>` : '',
  ]
  const change = [
    hiddenField('id', detail.id),
    canReplay
      ? html`<button name="do" value="replay" data-key="r"${isClear ? html` class="main"` : ''}>Replay…</button>`
      : '',
    canDiscard ? html`<button name="do" value="discard" data-key="d">Discard…</button>` : '',
  ]
  return html`<div class="actions">
${canSettle || detail.idByPerson ? formHtml({ action: `/records/${detail.id}/resolve`, viewer, isDialog: true }, settle) : ''}
${canReplay || canDiscard ? formHtml({ action: '/records/choose', viewer, isDialog: true }, change) : ''}</div>`
}
