import type { FastifyInstance } from 'fastify'
import { countFailureCauses } from '../../ledger/operator/search.ts'
import { countSubmissions, selectSubmissionPage } from '../../ledger/operator/selectSubmissions.ts'
import { readProblems } from '../../ledger/problems.ts'
import type { Databases } from '../../operations/databases.ts'
import { type FiltersRead, narrowFilterByText, readListFilters } from '../../operations/filters.ts'
import { skippedRowMessages } from '../../operations/problemMessages.ts'
import type { Viewer } from '../guard/viewer.ts'
import { sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import { createLoggedSearch } from '../valueAccess.ts'
import { type Listed, type RecordsView, recordsCountedMax, renderRecords } from './recordsHtml.ts'
import { type Fields, type RecordsQuery, readRecordsQuery, recordsPath } from './recordsQuery.ts'

export function recordsRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  app.get<{ Querystring: Fields }>('/records', async (request, reply) => {
    const query = readRecordsQuery(request.query)
    // Redirects to an address without the empty fields that a form sends.
    if (hasEmpty(request.query)) return reply.redirect(recordsPath(query), 303)
    const view = await readRecords(parts, request.viewer, query)
    return sendPage(reply.code(view.problems.length > 0 ? 400 : 200), renderRecords(view, request.viewer))
  })
}

const hasEmpty = (fields: Fields) => Object.values(fields).some((value) => value === '' || Array.isArray(value))

async function readRecords(parts: ConsoleParts, viewer: Viewer, query: RecordsQuery): Promise<RecordsView> {
  const nowMs = parts.clock.nowMs()
  const databases = await parts.databases()
  const read = readListFilters(query.filters, nowMs)
  const view = { query, nowMs, skippedRows: await readSkippedRows(databases, query) }
  if (read.kind === 'invalid') return { ...view, problems: read.problems, listed: null }
  return { ...view, problems: [], listed: await readListed(parts, viewer, query, read) }
}

const rowsDefault = 50
export const rowsMax = 200

const causesOfMax = 100_000

async function readListed(
  parts: ConsoleParts,
  viewer: Viewer,
  query: RecordsQuery,
  read: Extract<FiltersRead, { kind: 'value' }>,
): Promise<Listed> {
  const databases = await parts.databases()
  let cut: string | null = null
  const filter = await narrowFilterByText(createLoggedSearch(parts, viewer), read, (message) => {
    cut = message
  })
  if (query.byCause) {
    using _ = await parts.searches.take()
    return { kind: 'causes', filter, cut, ...(await countFailureCauses(databases.ledger, filter, causesOfMax)) }
  }
  const limit = Math.min(read.limit ?? rowsDefault, rowsMax)
  const [page, total] = await Promise.all([
    selectSubmissionPage(databases.ledger, filter, { order: query.order, from: query.from, limit }),
    countSubmissions(databases.ledger, filter, recordsCountedMax + 1),
  ])
  return { kind: 'page', filter, cut, page, total }
}

const problemsReadMax = 200

async function readSkippedRows(databases: Databases, { filters, from }: RecordsQuery): Promise<string[]> {
  const isDefault = Object.keys(filters).length === 0 && from === null
  return isDefault ? skippedRowMessages(await readProblems(databases.ledger, problemsReadMax)) : []
}
