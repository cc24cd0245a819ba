import type { FastifyInstance } from 'fastify'
import type { SubmissionDetail } from '../../ledger/operator/readSubmissionDetail.ts'
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
import type { Viewer } from '../guard/installGuard.ts'
import { notice, untrustedLinesHtml } from '../html/elements.ts'
import {
  checkbox,
  confirmFormHtml,
  formHtml,
  hiddenField,
  optionalHiddenField,
  optionLabel,
  readReason,
  reasonField,
  trimmedFieldText,
} from '../html/form.ts'
import { type HtmlValue, html } from '../html/html.ts'
import { sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import type { FormFields } from '../records/recordsQuery.ts'

/** Settles a record after a preview, if the record is as its page showed it. */
export function addResolveRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  app.post<{ Params: { id: string }; Body: FormFields }>('/records/:id/resolve', async (request, reply) => {
    const { viewer, params, body: fields } = request
    const isConfirmed = fields.confirmed !== undefined
    const back = `/records/${encodeURIComponent(params.id)}`
    const form = (carried: string[], content: HtmlValue) =>
      confirmFormHtml({ action: `${back}/resolve`, viewer, back }, [
        ['revision', 'answer', ...carried].map((name) => optionalHiddenField(fields, name)),
        content,
      ])
    const answer = answerOf(fields)
    const title = confirmWords(answer)
    if (answer.arrived === '' && !isConfirmed) return sendPage(reply, { title }, form([], transactionFields))
    const reason = readReason(fields)
    const problems = findResolveOptionProblems(answer)
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
      return sendPage(reply, { title }, [
        untrustedLinesHtml(would.message),
        question === null ? '' : notice('attention', question.text),
        form(
          ['transaction', 'unchecked'],
          [
            hiddenField('confirmed', 'on'),
            answer.notArrived ? checkbox('new-key', optionLabel('new-key'), { isOn: answer.newKey }) : '',
            reasonField,
            html`<button class="main" autofocus>${title}</button>`,
          ],
        ),
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
export function actionsHtml(detail: SubmissionDetail, revision: number, viewer: Viewer): HtmlValue {
  const { id, state, mayHaveArrived, conflict, idByPerson } = detail
  const canSettle = whyCannotBeSettledSuffix(detail) === null
  const canReplay = replayableStates.includes(state)
  const canDiscard = discardRules.allowedStates.includes(state)
  const main = mayHaveArrived || conflict !== null ? '' : html` class="main"`
  const settle = [
    // By the revision, a record that changed after the page was loaded is refused.
    hiddenField('revision', String(revision)),
    canSettle ? html`<button name="answer" value="arrived">It arrived…</button>` : '',
    canSettle ? html`<button name="answer" value="not-arrived">It did not arrive…</button>` : '',
    idByPerson ? html`<button name="answer" value="take-back">Take the id back…</button>` : '',
  ]
  const change = [
    hiddenField('id', id),
    canReplay ? html`<button name="do" value="replay" data-key="r"${main}>Replay…</button>` : '',
    canDiscard ? html`<button name="do" value="discard" data-key="d">Discard…</button>` : '',
  ]
  return html`<div class="actions">
${canSettle || idByPerson ? formHtml({ action: `/records/${id}/resolve`, viewer }, settle) : ''}
${canReplay || canDiscard ? formHtml({ action: '/records/choose', viewer }, change) : ''}</div>`
}
