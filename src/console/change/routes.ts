import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { reasonProblem } from '../../operations/actor.ts'
import { Refused } from '../errors.ts'
import { formText } from '../html/form.ts'
import { sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import type { Fields } from '../records/recordsQuery.ts'
import { createLoggedSearch } from '../valueAccess.ts'
import { renderChange, renderRefusedChange } from './changeHtml.ts'
import { type ChangeRequest, createChangeRunner, createChangeStore, type KeptChange } from './changeStore.ts'
import { readChangeRequest, readReplayTerms, selectChangeRecords } from './selectChangeRecords.ts'

const lookAgainS = 2

export function changeRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const kept = createChangeStore()
  const runner = createChangeRunner(parts)
  app.addHook('onClose', () => runner.stop())

  async function preview(request: FastifyRequest, reply: FastifyReply, asked: ChangeRequest) {
    const { viewer } = request
    const chosen = await selectChangeRecords(await parts.databases(), createLoggedSearch(parts, viewer), parts, asked)
    if (chosen.kind === 'refused') return sendPage(reply.code(400), renderRefusedChange(chosen.problems, viewer))
    const { token } = kept.keep({ ...chosen.change, owner: viewer.csrf })
    return reply.redirect(`/records/change/${token}`, 303)
  }

  const find = ({ params, viewer }: FastifyRequest<{ Params: { token: string } }>): KeptChange => {
    const found = kept.find(params.token, viewer.csrf)
    if (found === undefined)
      throw new Refused(404, 'This preview has ended, or belongs to another user. Choose the records again.')
    return found
  }

  app.post<{ Body: Fields }>('/records/choose', async (request, reply) => {
    const read = readChangeRequest(request.body)
    if (read.kind === 'invalid') return sendPage(reply.code(400), renderRefusedChange([read.problem], request.viewer))
    return preview(request, reply, read.request)
  })

  app.get<{ Params: { token: string } }>('/records/change/:token', async (request, reply) => {
    const change = find(request)
    if (change.progress.kind === 'running') reply.header('refresh', lookAgainS)
    return sendPage(reply, renderChange(change, request.viewer, parts.clock.nowMs()))
  })

  app.post<{ Params: { token: string }; Body: Fields }>('/records/change/:token/again', async (request, reply) => {
    const { request: asked } = find(request)
    return preview(request, reply, { ...asked, terms: readReplayTerms(request.body) })
  })

  app.post<{ Params: { token: string }; Body: Fields }>('/records/change/:token', async (request, reply) => {
    const change = find(request)
    const { viewer } = request
    const reason = formText(request.body, 'reason') ?? null
    const wrong = reason === null && change.request.verb === 'replay' ? null : reasonProblem(reason ?? '')
    if (wrong !== null)
      return sendPage(reply.code(400), renderChange(change, viewer, parts.clock.nowMs(), `The reason ${wrong}.`))
    await runner.start(change, { who: viewer.who, reason })
    return reply.redirect(`/records/change/${change.token}`, 303)
  })
}
