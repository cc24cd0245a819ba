import type { FastifyInstance, FastifyReply } from 'fastify'
import { reasonProblem } from '../../operations/actor.ts'
import {
  type Answer,
  answerProblems,
  findSettling,
  previewResolve,
  questionsBefore,
  type ResolveOutcome,
  resolveSubmission,
  whyNotResolved,
} from '../../operations/resolve.ts'
import { formText } from '../html/form.ts'
import { sendPage } from '../html/layout.ts'
import type { ShownRecords } from '../noteSight.ts'
import type { ConsoleParts } from '../parts.ts'
import type { Fields } from '../records/recordsQuery.ts'
import type { PageMessage } from './recordHtml.ts'
import type { RecordRequest } from './routes.ts'
import { renderResolve } from './waysHtml.ts'

interface Page {
  shown: ShownRecords
  sendRecord(request: RecordRequest, reply: FastifyReply, message: PageMessage | null): Promise<FastifyReply>
}

/** `/records/ID/resolve`: what a person says became of a record, first shown, then done. */
export function resolveRoutes(app: FastifyInstance, parts: ConsoleParts, { shown, sendRecord }: Page): void {
  app.post('/records/:id/resolve', async (request: RecordRequest, reply) => {
    const madeOf: unknown[] = [request.params, request.body]
    const refuse = (text: string) => sendRecord(request, reply.code(409), { tone: 'bad', text, madeOf })
    const { viewer } = request
    const fields = (request.body ?? {}) as Fields
    const answer = answerOf(fields)
    const reason = formText(fields, 'reason') ?? null
    const wrongReason = reason === null ? null : reasonProblem(reason)
    const problems = [...answerProblems(answer), ...(wrongReason === null ? [] : [`--reason ${wrongReason}`])]
    if (problems.length > 0) return refuse(`${problems.join('\n')}.`)
    const store = await parts.store()
    const found = await findSettling(store, request.params.id)
    if (found.kind !== 'found') return refuse(`there is no submission ${request.params.id}`)
    const { settling } = found
    madeOf.push(settling)
    const { id, outboxId, revision } = settling.submission
    const name = `outbox:${outboxId}`
    if (String(revision) !== fields.revision)
      return refuse(`${name} has taken a step since this page was shown, and was left alone: look again.`)
    const against = await whyNotResolved(store, settling, answer, name)
    if (against !== null) return refuse(wordsOf(against))
    if (fields.confirmed === undefined) {
      const message = wordsOf(previewResolve(settling, answer))
      const questions = questionsBefore(settling, answer)
      const page = renderResolve({ id, outboxId, revision, answer, message, questions, madeOf }, viewer)
      return sendPage(reply, page)
    }
    const said: string[] = []
    const outcome = await resolveSubmission(
      {
        changes: store.actingAs({ who: viewer.who, reason }),
        async askService(transaction) {
          const testimony = await parts.askService(transaction)
          madeOf.push(testimony)
          return testimony
        },
        onTestimony: (message) => void said.push(`${message}.`),
      },
      settling,
      answer,
    )
    if (outcome.kind === 'left') return refuse(wordsOf(outcome))
    shown.tell(viewer.csrf, id, [...said, outcome.message].join('\n'))
    return reply.redirect(`/records/${id}`, 303)
  })
}

const wordsOf = (outcome: ResolveOutcome) => (outcome.kind === 'left' ? outcome.reason : outcome.message)

function answerOf(fields: Fields): Answer {
  const { answer } = fields
  return {
    arrived: answer === 'arrived' ? (formText(fields, 'transaction') ?? '') : undefined,
    notArrived: answer === 'not-arrived',
    takeBack: answer === 'take-back',
    unchecked: fields.unchecked !== undefined,
    newKey: fields['new-key'] !== undefined,
  }
}
