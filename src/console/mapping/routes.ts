import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Databases, withOutbox } from '../../operations/databases.ts'
import { chooseRecordType, mapPayloads, previewRowMapping, splitPayloads } from '../../operations/mapRecords.ts'
import { readRecordWithContent } from '../../outbox/readRecordContents.ts'
import { readOutboxRecord } from '../../outbox/readRows.ts'
import { Refused } from '../errors.ts'
import { textAsTyped } from '../html/form.ts'
import { sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import { createUnmaskedRecordStore, logValuesShown } from '../valueAccess.ts'
import { renderMapping } from './mappingHtml.ts'
import {
  type MappingForm,
  type MappingResult,
  readMappingFiles,
  readMappingView,
  toMappingResult,
} from './readMapping.ts'

/** More would delay other viewers for over 0.1 s. */
const formMaxBytes = 500_000
const payloadsMax = 1_000

interface Asked {
  form?: MappingForm
  result: MappingResult | null
  isShown?: boolean
}

export function mappingRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const shown = createUnmaskedRecordStore(parts.clock)

  async function send(request: FastifyRequest, reply: FastifyReply, asked: Asked): Promise<FastifyReply> {
    const { result, isShown = false, form = { type: '', payload: '' } } = asked
    const view = { ...(await readMappingView(await parts.databases(), parts)), form, result, isShown }
    return sendPage(reply.code(result?.kind === 'refused' ? 400 : 200), renderMapping(view, request.viewer))
  }

  app.get<{ Querystring: { outbox?: string } }>('/mapping', async (request, reply) => {
    const { outbox } = request.query
    if (typeof outbox !== 'string' || outbox === '') return send(request, reply, { result: null })
    const result = await mapOutboxRow(await parts.databases(), outbox)
    const isRow = result?.kind === 'mapped' && result.outboxId !== null
    const isShown = isRow && shown.isShown(request.viewer, rowName(result.outboxId ?? ''))
    return send(request, reply, { result, isShown })
  })

  app.post('/mapping', { config: { changesNothing: true }, bodyLimit: formMaxBytes }, (request, reply) => {
    const form = { type: textAsTyped(request.body, 'type'), payload: textAsTyped(request.body, 'payload') }
    return send(request, reply, { form, result: mapPasted(form) })
  })

  app.post<{ Body: { outbox?: string } }>(
    '/mapping/show',
    { config: { changesNothing: true } },
    async ({ body: { outbox = '' }, viewer }, reply) => {
      const record = await withOutbox(await parts.databases(), (erp) => readOutboxRecord(erp, outbox))
      if (record === null) throw new Refused(404, `There is no row ${outbox} in the outbox.`)
      const { outboxId, type } = record
      const name = rowName(outboxId)
      await logValuesShown(parts, viewer, { act: 'show', records: [{ id: name, outboxId, type }], unnamed: 0 })
      shown.show(viewer, name)
      return reply.redirect(`/mapping?outbox=${encodeURIComponent(outboxId)}`, 303)
    },
  )

  function mapPasted({ type, payload }: MappingForm): MappingResult | null {
    const files = readMappingFiles(parts)
    if (files.kind === 'invalid') return null
    const chosen = chooseRecordType(files.mappings, type === '' ? undefined : type)
    if (chosen.kind === 'invalid') return { kind: 'refused', problem: chosen.problem }
    const count = splitPayloads(payload).length
    if (count > payloadsMax)
      return {
        kind: 'refused',
        problem: `the form holds ${count} payloads, and takes at most ${payloadsMax} at once: give a file to outboxd map`,
      }
    const previews = mapPayloads(files.mappings, chosen.type, payload)
    return previews.length === 0
      ? { kind: 'refused', problem: 'there is no payload in the form' }
      : toMappingResult(files.mappings, previews, null)
  }

  async function mapOutboxRow(databases: Databases, outbox: string): Promise<MappingResult | null> {
    const files = readMappingFiles(parts)
    if (files.kind === 'invalid') return null
    const record = await withOutbox(databases, (erp) => readRecordWithContent(erp, files.mappings, outbox))
    return record === null
      ? { kind: 'refused', problem: `there is no row ${outbox} in the outbox` }
      : toMappingResult(files.mappings, [previewRowMapping(files.mappings, record)], record.outboxId)
  }
}

const rowName = (outboxId: string) => `outbox:${outboxId}`
