import type { FastifyInstance } from 'fastify'
import { type PauseRequest, readPause } from '../../operations/pause.ts'
import { reasonProblem } from '../../operations/reason.ts'
import { previewResume, type ResumeTerms, resumeMessages, resumeSending } from '../../operations/resume.ts'
import { Refused } from '../guard/refused.ts'
import type { ConsoleParts } from '../parts.ts'
import { renderPausePreview, renderResumePreview } from './pauseHtml.ts'

/** `/pause` and `/resume`: asked for, they say what they would do; posted to, they do it. @param onChanged what was read before is old */
export function pauseRoutes(app: FastifyInstance, { store, clock }: ConsoleParts, onChanged: () => void): void {
  const htmlType = 'text/html; charset=utf-8'

  app.get('/pause', async ({ viewer, query }, reply) => {
    const request = pauseRequest(query)
    return reply.type(htmlType).send(renderPausePreview(request, readPause(request), viewer, clock.nowMs()))
  })

  app.post('/pause', async ({ viewer, body }, reply) => {
    const request = pauseRequest(body)
    const read = readPause(request)
    if (read.kind === 'invalid')
      return reply
        .code(400)
        .type(htmlType)
        .send(renderPausePreview(request, read, viewer, clock.nowMs()))
    await (await store()).actingAs({ who: viewer.who, reason: read.reason }).pause(read.forMs)
    onChanged()
    return reply.redirect('/', 303)
  })

  app.get('/resume', async ({ viewer, query }, reply) => {
    const terms = resumeTerms(query)
    const would = await previewResume(await store(), terms)
    const lines = resumeMessages(would, { ...terms, dryRun: true, nowMs: clock.nowMs() })
    return reply.type(htmlType).send(renderResumePreview(lines, terms, viewer))
  })

  app.post('/resume', async ({ viewer, body }, reply) => {
    const reason = textOf(body, 'reason') ?? null
    const wrong = reason === null ? null : reasonProblem(reason)
    if (wrong !== null) throw new Refused(400, `The reason ${wrong}: nothing was changed.`)
    const opened = await store()
    await resumeSending(opened, opened.actingAs({ who: viewer.who, reason }), resumeTerms(body))
    onChanged()
    return reply.redirect('/', 303)
  })
}

/** A form's fields are texts; one that is empty was left out. */
function pauseRequest(fields: unknown): PauseRequest {
  return { reason: textOf(fields, 'reason'), for: textOf(fields, 'for') }
}

function resumeTerms(fields: unknown): ResumeTerms {
  return { all: textOf(fields, 'all') !== undefined, believeRefusals: textOf(fields, 'believeRefusals') !== undefined }
}

function textOf(fields: unknown, name: string): string | undefined {
  const value = (fields as Record<string, unknown> | null | undefined)?.[name]
  const text = typeof value === 'string' ? value.trim() : ''
  return text === '' ? undefined : text
}
