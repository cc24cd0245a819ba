import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  readRevisions,
  readSubmissionDetail,
  type SubmissionDetail,
} from '../../ledger/operator/readSubmissionDetail.ts'
import type { Databases } from '../../operations/databases.ts'
import { BoundedMap } from '../boundedMap.ts'
import { Refused } from '../errors.ts'
import { sendPage } from '../html/layout.ts'
import { readMappingFiles } from '../mapping/readMapping.ts'
import { shareReadsByKey } from '../now/sharedReads.ts'
import type { ConsoleParts } from '../parts.ts'
import type { Fields } from '../records/recordsQuery.ts'
import { createUnmaskedRecordStore, logDownload, logValuesShown } from '../valueAccess.ts'
import { renderResolve } from './actionsHtml.ts'
import { findRecordByName, readRecord } from './readRecord.ts'
import { type PageMessage, renderMatchingRecords, renderMissingRecord, renderRecord } from './recordHtml.ts'
import { resolveRecord } from './resolveRecord.ts'

const versionAgeMs = 2_000
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

type RecordRequest = FastifyRequest<{ Params: { id: string } }>

export function recordRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const { databases, clock } = parts
  const shown = createUnmaskedRecordStore(clock)
  const done = keepMessages()
  const readVersion = shareReadsByKey(clock, versionAgeMs, async (id: string) =>
    uuid.test(id) ? ((await readRevisions((await databases()).ledger, [id])).get(id) ?? '') : '',
  )
  app.get('/records/:id/version', { config: { isPolled: true } }, async ({ params }: RecordRequest) => ({
    version: await readVersion(params.id),
  }))

  async function sendRecord(
    request: RecordRequest,
    reply: FastifyReply,
    message: PageMessage | null,
  ): Promise<FastifyReply> {
    const { viewer, params } = request
    const named = await findRecordByName(await databases(), params.id)
    if (named.kind === 'none')
      return sendPage(reply.code(404), renderMissingRecord(named.message, named.outboxId, viewer))
    if (named.kind === 'several')
      return sendPage(reply, renderMatchingRecords(params.id, named.submissions, named.isCut, viewer, clock.nowMs()))
    const { id } = named.submission
    if (params.id !== id) return reply.redirect(`/records/${id}`, 303)
    const files = readMappingFiles(parts)
    const view = await readRecord(await databases(), named.submission, files.kind === 'value' ? files.mappings : null)
    if (view === null)
      return sendPage(reply.code(404), renderMissingRecord(`there is no submission ${id} any more`, null, viewer))
    return sendPage(reply, renderRecord(view, { viewer, isShown: shown.isShown(viewer, id), message }))
  }

  app.get('/records/:id', (request: RecordRequest, reply) => {
    const text = done.take(request.viewer.csrf, request.params.id)
    return sendRecord(request, reply, text === undefined ? null : { tone: 'good', text })
  })

  app.post('/records/:id/show', { config: { changesNothing: true } }, async (request: RecordRequest, reply) => {
    const { viewer } = request
    const detail = await detailOf(await databases(), request.params.id)
    await logValuesShown(parts, viewer, { act: 'show', records: [detail], unnamed: 0 })
    shown.show(viewer, detail.id)
    return reply.redirect(`/records/${detail.id}#values-head`, 303)
  })

  app.post('/records/:id/hide', { config: { changesNothing: true } }, async (request: RecordRequest, reply) => {
    shown.hide(request.viewer, request.params.id)
    return reply.redirect(`/records/${encodeURIComponent(request.params.id)}#values-head`, 303)
  })

  app.post('/records/:id/resolve', async (request: RecordRequest, reply) => {
    const { viewer, params, body } = request
    const resolving = await resolveRecord(parts, viewer, params.id, (body ?? {}) as Fields)
    switch (resolving.kind) {
      case 'refused':
        return sendRecord(request, reply.code(409), { tone: 'bad', text: resolving.message })
      case 'preview':
        return sendPage(reply, renderResolve(resolving.preview, viewer))
      case 'done':
        done.keep(viewer.csrf, resolving.id, resolving.message)
        return reply.redirect(`/records/${resolving.id}`, 303)
      default:
        return resolving satisfies never
    }
  })

  for (const name of ['payload', 'body', 'result'] as const)
    app.get(`/records/:id/${name}.txt`, async (request: RecordRequest, reply) => {
      const { id } = request.params
      if (!shown.isShown(request.viewer, id)) throw new Refused(403, 'Ask for the values on the record’s page first.')
      const detail = await detailOf(await databases(), id)
      await logDownload(parts, request.viewer, [detail], { file: `${name}.txt` })
      return reply
        .type('text/plain; charset=utf-8')
        .header('content-disposition', `attachment; filename="${name}-${id}.txt"`)
        .send(detail[name] ?? '')
    })
}

async function detailOf(databases: Databases, id: string): Promise<SubmissionDetail> {
  const detail = uuid.test(id) ? await readSubmissionDetail(databases.ledger, id, databases.config.keyOnFailure) : null
  if (detail === null) throw new Refused(404, 'There is no such record.')
  return detail
}

const messagesMax = 1_000

/** Keeps the result of an action for the page after the redirect. */
function keepMessages() {
  const messages = new BoundedMap<string, string>(messagesMax)
  return {
    keep: (viewer: string, id: string, message: string) => void messages.set(`${viewer} ${id}`, message),
    take(viewer: string, id: string): string | undefined {
      const message = messages.get(`${viewer} ${id}`)
      messages.delete(`${viewer} ${id}`)
      return message
    },
  }
}
