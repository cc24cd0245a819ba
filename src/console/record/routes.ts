import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { SubmissionDetail } from '../../ledger/operator/readSubmissionDetail.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'
import { Refused } from '../errors.ts'
import { sendPage } from '../html/layout.ts'
import { readFiles } from '../mapping/readMapping.ts'
import { keepShownRecords, noteDownload, noteSight } from '../noteSight.ts'
import type { ConsoleParts } from '../parts.ts'
import { findRecord, readRecord } from './readRecord.ts'
import { type PageMessage, renderMissing, renderRecord, renderSeveral } from './recordHtml.ts'
import { resolveRoutes } from './resolveRoutes.ts'

const watchEveryMs = 1_500
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The address of a record, with its id. */
export type RecordRequest = FastifyRequest<{ Params: { id: string } }>

/** `/records/ID`: what outboxd show says of one submission, and what can be done with it. */
export function recordRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const { store, clock, live } = parts
  const shown = keepShownRecords(clock)
  live.addTopic('record', {
    everyMs: watchEveryMs,
    readVersions: async (keys) => (await store()).readRevisions(keys.filter((key) => uuid.test(key))),
  })

  async function sendRecord(
    request: RecordRequest,
    reply: FastifyReply,
    message: PageMessage | null,
  ): Promise<FastifyReply> {
    const { viewer, params } = request
    const named = await findRecord(await store(), params.id)
    if (named.kind === 'none') return sendPage(reply.code(404), renderMissing(named.message, named.madeOf, viewer))
    if (named.kind === 'several')
      return sendPage(reply, renderSeveral(params.id, named.submissions, named.isCut, viewer, clock.nowMs()))
    const { id } = named.submission
    if (params.id !== id) return reply.redirect(`/records/${id}`, 303)
    const files = readFiles(parts)
    // The page of a record is there whatever the mapping files are like.
    const view = await readRecord(await store(), named.submission, files.kind === 'value' ? files.mappings : null)
    if (view === null)
      return sendPage(reply.code(404), renderMissing(`there is no submission ${id} any more`, id, viewer))
    return sendPage(reply, renderRecord(view, { viewer, isShown: shown.isShown(viewer.csrf, id), message }))
  }

  app.get('/records/:id', (request: RecordRequest, reply) => {
    const told = shown.told(request.viewer.csrf, request.params.id)
    return sendRecord(request, reply, told === null ? null : { tone: 'good', text: told })
  })

  app.post('/records/:id/show', { config: { changesNothing: true } }, async (request: RecordRequest, reply) => {
    const { viewer } = request
    const detail = await detailOf(await store(), request.params.id)
    await noteSight(parts, viewer, { act: 'show', records: [detail], unnamed: 0 })
    shown.show(viewer.csrf, detail.id)
    return reply.redirect(`/records/${detail.id}#values-head`, 303)
  })

  app.post('/records/:id/hide', { config: { changesNothing: true } }, async (request: RecordRequest, reply) => {
    shown.hide(request.viewer.csrf, request.params.id)
    return reply.redirect(`/records/${encodeURIComponent(request.params.id)}#values-head`, 303)
  })

  for (const name of ['payload', 'body', 'result'] as const)
    app.get(`/records/:id/${name}.txt`, async (request: RecordRequest, reply) => {
      const { id } = request.params
      if (!shown.isShown(request.viewer.csrf, id))
        throw new Refused(403, 'Ask for the values on the record’s page first: who does so is logged.')
      const detail = await detailOf(await store(), id)
      await noteDownload(parts, request.viewer, [detail], { file: `${name}.txt` })
      return reply
        .type('text/plain; charset=utf-8')
        .header('content-disposition', `attachment; filename="${name}-${id}.txt"`)
        .send(detail[name] ?? '')
    })

  resolveRoutes(app, parts, { shown, sendRecord })
}

async function detailOf(store: OperatorStore, id: string): Promise<SubmissionDetail> {
  const detail = uuid.test(id) ? await store.readSubmissionDetail(id) : null
  if (detail === null) throw new Refused(404, 'There is no such record.')
  return detail
}
