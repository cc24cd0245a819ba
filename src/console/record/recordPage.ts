import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  readSubmissionDetail,
  readSubmissionVersions,
  type SubmissionDetail,
} from '../../ledger/operator/readSubmissionDetail.ts'
import { anySubmissionFilter, selectSubmissions } from '../../ledger/operator/selectSubmissions.ts'
import { statesNeedingAttention } from '../../model/submission.ts'
import type { Databases } from '../../operations/databases.ts'
import { explainMissingRecord, searchRecords } from '../../operations/references.ts'
import { tryReadCurrentRow } from '../../operations/submissionFacts.ts'
import { capitalize } from '../../plainText.ts'
import { addVersionRoute } from '../bounds.ts'
import { RequestRefused } from '../errors.ts'
import { notice, untrustedTextHtml } from '../html/elements.ts'
import { trimmedFieldText } from '../html/form.ts'
import { html } from '../html/html.ts'
import { sendPage } from '../html/layout.ts'
import { type ConsoleParts, readMappingFiles } from '../parts.ts'
import { recordTable } from '../records/recordTable.ts'
import { logValuesShown, type UnmaskPermissions } from '../valueAccess.ts'
import { recordHeading, recordHtml, recordName } from './recordHtml.ts'
import { valuesSection } from './valuesHtml.ts'

const listedMax = 50
/** Of those that need attention, the longest first. */
const neighboursMax = 1_000
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

type RecordRequest = FastifyRequest<{ Params: { id: string } }>

export function addRecordRoutes(app: FastifyInstance, parts: ConsoleParts, shown: UnmaskPermissions): void {
  const { databases, clock } = parts

  const readVersion = async (id: string) =>
    uuid.test(id) ? ((await readSubmissionVersions((await databases()).ledger, [id])).get(id) ?? '') : ''

  addVersionRoute(app, '/records/:id/version', parts, ({ params }) => readVersion((params as { id: string }).id))

  app.get('/find', async ({ query }, reply) => {
    const word = trimmedFieldText(query, 'word')
    return word === undefined ? reply.redirect('/records', 303) : sendFound(word, reply)
  })

  app.get('/records/:id', async ({ params }: RecordRequest, reply) => sendFound(params.id, reply))

  for (const [way, step] of [
    ['next', 1],
    ['former', -1],
  ] as const)
    app.get(`/records/:id/${way}`, async ({ params: { id } }: RecordRequest, reply) => {
      const filter = { ...anySubmissionFilter, states: statesNeedingAttention }
      const all = await selectSubmissions((await databases()).ledger, filter, neighboursMax)
      const here = all.findIndex((each) => each.id === id)
      const neighbour = all[here + step] ?? all.at(step === 1 ? 0 : -1)
      return reply.redirect(neighbour === undefined ? '/records' : `/records/${neighbour.id}`, 303)
    })

  /** Sends the page of the record that `word` names, the list of several, or why there is none. */
  async function sendFound(word: string, reply: FastifyReply): Promise<FastifyReply> {
    const { viewer, url } = reply.request
    const opened = await databases()
    const found = (await searchRecords(opened.ledger, word, listedMax + 1)) ?? []
    const [submission] = found
    if (found.length > 1) {
      const more = found.length > listedMax ? ', and there are more' : ''
      return sendPage(reply, { title: 'Several records match' }, [
        html`<p>These match ${untrustedTextHtml(word, 100)}${more}. Choose one.</p>`,
        html`<section>${recordTable('Records', found.slice(0, listedMax), clock.nowMs())}</section>`,
      ])
    }
    const isItsPage = url.startsWith(`/records/${submission?.id}`)
    if (submission !== undefined && !isItsPage) return reply.redirect(`/records/${submission.id}`, 303)
    // Before the record, so that a step in between makes a new version.
    const version = submission === undefined ? '' : await readVersion(submission.id)
    const detail = submission === undefined ? null : await readSubmissionDetail(opened.ledger, submission.id)
    if (submission === undefined || detail === null)
      return sendMissing(reply, word, await explainMissingRecord(opened, word))
    const row = detail.conflict === null ? null : await tryReadCurrentRow(opened, detail.outboxId)
    const areValuesShown = shown.isShown(viewer, detail.id)
    const heading = recordHeading(detail, submission.revision, viewer)
    const live = { path: `/records/${detail.id}/version`, version }
    return sendPage(reply, { title: recordName(detail), heading, live }, [
      recordHtml(detail, row, areValuesShown),
      valuesSection(detail, readMappingFiles(opened.config), viewer, areValuesShown),
    ])
  }

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
}

async function detailOf(databases: Databases, id: string): Promise<SubmissionDetail> {
  const detail = uuid.test(id) ? await readSubmissionDetail(databases.ledger, id) : null
  if (detail === null) throw new RequestRefused(404, 'There is no such record.')
  return detail
}

function sendMissing(reply: FastifyReply, word: string, message: string): FastifyReply {
  const text = encodeURIComponent(word.replace(/^(outbox|transaction|key):/, ''))
  const mapping = html`<p><a href="/mapping?outbox=${text}">Mapping</a>: the request that the row would become</p>`
  return sendPage(reply.code(404), { title: 'No such record' }, [
    notice('attention', `${capitalize(message)}.`),
    word.startsWith('outbox:') ? mapping : '',
    html`<p><a href="/records?containing=${text}">Search the values of all records</a>; the search is logged</p>`,
    html`<p><a href="/records">Records</a></p>`,
  ])
}
