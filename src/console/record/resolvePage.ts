import type { FastifyInstance } from 'fastify'
import { findReasonProblemClause } from '../../operations/actor.ts'
import { createOperator } from '../../operations/databases.ts'
import { discardRules } from '../../operations/discard.ts'
import { replayableStates } from '../../operations/replay.ts'
import {
  type ConfirmationQuestion,
  findResolveOptionProblems,
  previewResolution,
  type ResolveAnswer,
  resolveSubmission,
  whyCannotBeSettledSuffix,
} from '../../operations/resolve.ts'
import { RequestRefused } from '../errors.ts'
import type { Viewer } from '../guard/viewer.ts'
import { notice, section, untrustedParagraphHtml } from '../html/elements.ts'
import { checkbox, formHtml, hiddenField, optionalHiddenField, optionLabel, trimmedFieldText } from '../html/form.ts'
import { type HtmlValue, html } from '../html/html.ts'
import { type Page, renderPage, sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import type { FormFields } from '../records/recordsQuery.ts'
import type { RecordPageData } from './readRecord.ts'

/** Settles a record after a preview, if the record is as its page showed it. */
export function addResolveRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  app.post<{ Params: { id: string }; Body: FormFields }>('/records/:id/resolve', async (request, reply) => {
    const { viewer, params, body: fields } = request
    const answer = answerOf(fields)
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
    if (fields.confirmed === undefined)
      return sendPage(reply, renderPreview({ id, answer, fields, message: would.message, question }, viewer))
    const operator = createOperator(databases, { who: viewer.who, reason })
    const asking = { operator, askService: parts.askService, onServiceAnswer: () => {} }
    const outcome = await resolveSubmission(asking, settling, answer)
    if (outcome.kind === 'left') throw new RequestRefused(409, outcome.reason)
    return reply.redirect(`/records/${id}`, 303)
  })
}

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

interface Preview {
  id: string
  answer: ResolveAnswer
  fields: FormFields
  message: string
  question: ConfirmationQuestion | null
}

function renderPreview({ id, answer, fields, message, question }: Preview, viewer: Viewer): Page {
  const asked = question === null ? '' : notice('attention', untrustedParagraphHtml(question.text))
  const carried = ['revision', 'answer', 'transaction', 'unchecked', 'new-key']
  return renderPage({ title: 'Confirm', current: '/records', viewer }, [
    html`<section>${untrustedParagraphHtml(message)}${asked}
${formHtml({ action: `/records/${id}/resolve`, viewer }, [
  carried.map((name) => optionalHiddenField(fields, name)),
  hiddenField('confirmed', 'on'),
  html`<label class="wide">Reason (optional)<input name="reason" maxlength="1000"></label>`,
  html`<button class="main">${confirmWords(answer)}</button> <a href="/records/${id}">Cancel: change nothing</a>`,
])}</section>`,
  ])
}

function confirmWords({ arrived, notArrived }: ResolveAnswer): string {
  if (arrived !== undefined) return 'It arrived'
  return notArrived ? 'It did not arrive: send it again' : 'Take the id back'
}

export function actionsSection(view: RecordPageData, viewer: Viewer): HtmlValue {
  if (!viewer.canChange) return ''
  const { detail } = view
  const forms = ways
    .filter(({ isOpen }) => isOpen(detail))
    .map(({ id, title, means, fields }) => {
      const isBulk = id === 'replay' || id === 'discard'
      const action = isBulk ? '/records/choose' : `/records/${detail.id}/resolve`
      // By the revision, a record that changed after the page was loaded is refused.
      const seen = isBulk ? hiddenField('id', detail.id) : hiddenField('revision', String(view.submission.revision))
      const submit = isBulk
        ? html`<button name="do" value="${id}-ticked">${title} …</button>`
        : html`<button name="answer" value="${id}">${title} …</button>`
      return html`<div class="way" id="${id}"><h3>${title}</h3>
<p class="quiet">${means}</p>
${formHtml({ action, viewer }, [seen, fields, submit])}</div>`
    })
  return forms.length === 0 ? '' : section('ways', 'What you can do', html`<div class="side-by-side">${forms}</div>`)
}

interface WayForm {
  id: 'replay' | 'arrived' | 'not-arrived' | 'take-back' | 'discard'
  title: string
  isOpen: (detail: RecordPageData['detail']) => boolean
  means: string
  fields: HtmlValue
}

const canSettle = (detail: RecordPageData['detail']) => whyCannotBeSettledSuffix(detail) === null

const ways: readonly WayForm[] = [
  {
    id: 'replay',
    title: 'Replay',
    isOpen: ({ state }) => replayableStates.includes(state),
    means: 'map it and send it again; --refresh reads the row again',
    fields: [checkbox('refresh', optionLabel('refresh')), checkbox('new-key', optionLabel('new-key'))],
  },
  {
    id: 'arrived',
    title: 'It arrived',
    isOpen: canSettle,
    means: 'the service has it under this id; outboxd tracks it to its end',
    fields: html`<label class="wide">Its transaction or order id<input name="transaction" required maxlength="500" autocomplete="off"></label>
${checkbox('unchecked', optionLabel('unchecked'))}`,
  },
  {
    id: 'not-arrived',
    title: 'It did not arrive',
    isOpen: canSettle,
    means: 'the service does not have it; outboxd sends it again',
    fields: checkbox('new-key', optionLabel('new-key')),
  },
  {
    id: 'take-back',
    title: 'Take the id back',
    isOpen: ({ idByPerson }) => idByPerson,
    means: 'the id that an operator gave is wrong; the record becomes uncertain again',
    fields: '',
  },
  {
    id: 'discard',
    title: 'Discard',
    isOpen: ({ state }) => discardRules.allowedStates.includes(state),
    means: 'if it no longer matters',
    fields: '',
  },
]
