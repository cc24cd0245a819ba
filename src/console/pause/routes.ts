import type { FastifyInstance } from 'fastify'
import { raiseOperatorPause } from '../../ledger/operator/pauses.ts'
import { reasonProblem } from '../../operations/actor.ts'
import { operatorOf } from '../../operations/databases.ts'
import {
  type PauseRequest,
  previewResume,
  type ResumeTerms,
  readPause,
  resumeMessages,
  resumeSending,
} from '../../operations/pause.ts'
import { Refused } from '../errors.ts'
import { formText } from '../html/form.ts'
import { sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import { renderPausePreview, renderResumePreview } from './pauseHtml.ts'

export function pauseRoutes(app: FastifyInstance, { databases, clock }: ConsoleParts, onChanged: () => void): void {
  app.get('/pause', async ({ viewer, query }, reply) => {
    const request = pauseRequest(query)
    return sendPage(reply, renderPausePreview(request, readPause(request), viewer, clock.nowMs()))
  })

  app.post('/pause', async ({ viewer, body }, reply) => {
    const request = pauseRequest(body)
    const read = readPause(request)
    if (read.kind === 'invalid')
      return sendPage(reply.code(400), renderPausePreview(request, read, viewer, clock.nowMs()))
    await raiseOperatorPause(operatorOf(await databases(), { who: viewer.who, reason: read.reason }), read.forMs)
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
    const reason = formText(body, 'reason') ?? null
    const wrong = reason === null ? null : reasonProblem(reason)
    if (wrong !== null) throw new Refused(400, `The reason ${wrong}: nothing was changed.`)
    await resumeSending(operatorOf(await databases(), { who: viewer.who, reason }), resumeTerms(body))
    onChanged()
    return reply.redirect('/', 303)
  })
}

function pauseRequest(fields: unknown): PauseRequest {
  return { reason: formText(fields, 'reason'), for: formText(fields, 'for') }
}

function resumeTerms(fields: unknown): ResumeTerms {
  return {
    all: formText(fields, 'all') !== undefined,
    believeRefusals: formText(fields, 'believeRefusals') !== undefined,
  }
}
