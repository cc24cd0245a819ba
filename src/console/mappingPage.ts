import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Mappings } from '../mapping/loadMappings.ts'
import type { OutboxRecord } from '../model/outbox.ts'
import { type Databases, withOutbox } from '../operations/databases.ts'
import { explainError } from '../operations/explainError.ts'
import {
  chooseRecordType,
  findPreviewWarningLines,
  type MapPreview,
  mapPayloads,
  previewRowMapping,
} from '../operations/mapRecords.ts'
import { readRecordWithContent } from '../outbox/readRecordContents.ts'
import { readWaitingRows } from '../outbox/readRows.ts'
import { capitalize } from '../plainText.ts'
import type { Viewer } from './guard/installGuard.ts'
import { nothingToShow, notice, section, table, untrustedTextHtml } from './html/elements.ts'
import { fieldTextAsTyped, formHtml, hiddenField, trimmedFieldText } from './html/form.ts'
import { type HtmlValue, html } from './html/html.ts'
import { sendPage } from './html/layout.ts'
import { type ConsoleParts, readMappingFiles } from './parts.ts'
import { jsonHtml, mappedFieldsTable } from './record/valuesHtml.ts'
import { logValuesShown, maskedValuesNote } from './valueAccess.ts'

/** `row` is null for a payload that was typed. */
type MapResult = { preview: MapPreview; row: OutboxRecord | null; isMasked: boolean } | { problem: string }

interface MappingForm {
  type: string
  payload: string
}

export function addMappingRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const { databases, config } = parts

  async function send(
    reply: FastifyReply,
    map: (mappings: Mappings) => Promise<MapResult | null>,
    typed: MappingForm = { type: '', payload: '' },
  ): Promise<FastifyReply> {
    const files = readMappingFiles(config)
    if (files.kind === 'invalid') return sendPage(reply, { title: 'Mapping' }, notice('bad', files.problem))
    const { mappings } = files
    const { viewer } = reply.request
    const result = await map(mappings)
    const isRefused = result !== null && 'problem' in result
    return sendPage(reply.code(isRefused ? 400 : 200), { title: 'Mapping' }, [
      result && resultSection(mappings, result, viewer),
      pasteSection(mappings, typed, viewer),
      section('waiting', 'Rows waiting in the outbox, the next first', await waitingRows(await databases())),
    ])
  }

  async function mapRow(mappings: Mappings, outbox: string): Promise<MapResult> {
    const record = await withOutbox(await databases(), (erp) => readRecordWithContent(erp, mappings, outbox))
    if (record === null) return { problem: `there is no row ${outbox} in the outbox` }
    return { preview: previewRowMapping(mappings, record), row: record, isMasked: true }
  }

  app.get('/mapping', ({ query }, reply) => {
    const outbox = trimmedFieldText(query, 'outbox')
    return send(reply, async (mappings) => (outbox === undefined ? null : mapRow(mappings, outbox)))
  })

  app.post('/mapping', { config: { changesNothing: true } }, ({ body }, reply) => {
    const typed = { type: fieldTextAsTyped(body, 'type'), payload: fieldTextAsTyped(body, 'payload') }
    return send(reply, async (mappings) => mapTyped(mappings, typed, config.payloadMaxBytes), typed)
  })

  app.post('/mapping/show', { config: { changesNothing: true } }, ({ body, viewer }, reply) =>
    send(reply, async (mappings) => {
      const result = await mapRow(mappings, fieldTextAsTyped(body, 'outbox'))
      if ('problem' in result || result.row === null) return result
      const { outboxId, type } = result.row
      await logValuesShown(parts, viewer, { act: 'show', records: [{ id: null, outboxId, type }], unnamed: 0 })
      return { ...result, isMasked: false }
    }),
  )
}

function mapTyped(mappings: Mappings, { type, payload }: MappingForm, bytesMax: number): MapResult {
  const chosen = chooseRecordType(mappings, type === '' ? undefined : type)
  if (chosen.kind === 'invalid') return { problem: chosen.problem }
  const [preview, ...others] = mapPayloads(mappings, chosen.type, payload, bytesMax)
  if (preview === undefined) return { problem: 'there is no payload in the form' }
  if (others.length > 0) return { problem: 'the form takes one payload: `outboxd map FILE` takes many' }
  return { preview, row: null, isMasked: false }
}

function pasteSection(mappings: Mappings, { type, payload }: MappingForm, viewer: Viewer): HtmlValue {
  const types = [...mappings.keys()].sort()
  const options = types.map((each) => html`<option${each === type ? html` selected` : ''}>${each}</option>`)
  return section('try', 'Try a payload', [
    html`<p class="quiet">Shows the request that it would become. Nothing is sent or kept.</p>`,
    formHtml({ action: '/mapping', viewer, class: 'paste', changes: false }, [
      html`<p><label>Type<select name="type">${options}</select></label></p>`,
      html`<p><label for="payload">Payload</label><textarea id="payload" name="payload" rows="8" spellcheck="false" required>
${payload}</textarea></p>`,
      html`<button class="main">Map</button>`,
    ]),
  ])
}

function resultSection(mappings: Mappings, result: MapResult, viewer: Viewer): HtmlValue {
  if ('problem' in result) return notice('bad', `${capitalize(result.problem)}.`)
  const { preview, row, isMasked } = result
  const warnings = findPreviewWarningLines(mappings, [preview])
  const asking = html`<p>${maskedValuesNote(viewer)}</p>${hiddenField('outbox', row?.outboxId ?? '')}<button>Show the values</button>`
  return section('result', html`What ${untrustedTextHtml(preview.name, 60)} would become`, [
    warnings.length > 0 ? notice('attention', warnings.join('\n')) : '',
    isMasked ? formHtml({ action: '/mapping/show', viewer, changes: false }, asking) : '',
    mappedFieldsTable(preview, mappings.get(preview.type), isMasked),
    preview.kind === 'mapped' ? jsonHtml(preview.body, isMasked, `The request of ${preview.name}`) : '',
  ])
}

const waitingShown = 20

async function waitingRows(databases: Databases): Promise<HtmlValue> {
  try {
    const waiting = await withOutbox(databases, (outbox) => readWaitingRows(outbox, waitingShown))
    if (waiting.length === 0) return nothingToShow('No row waits in the outbox.')
    const rows = waiting.map(({ outboxId, type, key, createdAt }) => [
      html`<a href="/mapping?outbox=${encodeURIComponent(outboxId)}">${untrustedTextHtml(outboxId, 36)}</a>`,
      untrustedTextHtml(type, 24),
      key === null ? '–' : untrustedTextHtml(key, 24),
      untrustedTextHtml(createdAt ?? '–', 40),
    ])
    return table('Waiting rows', ['Row', 'Type', 'Key', 'Created'], rows)
  } catch (error) {
    return notice('attention', explainError(error).message)
  }
}
