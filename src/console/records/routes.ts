import type { FastifyInstance } from 'fastify'
import { type FiltersRead, narrowByText, readListFilters } from '../../operations/filters.ts'
import { skippedRowMessages } from '../../operations/problemMessage.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'
import { sendPage } from '../html/layout.ts'
import { withSearchesNoted } from '../noteSight.ts'
import type { ConsoleParts } from '../parts.ts'
import { rememberSearches } from '../searches.ts'
import { countedMax, type Listed, type RecordsView, renderRecords } from './recordsHtml.ts'
import { type Fields, type RecordsQuery, readRecordsQuery, recordsPath } from './recordsQuery.ts'
import { watchLists } from './watchList.ts'

/** `/records`: submissions by the filters of outboxd list. */
export function recordsRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const { store, clock, live } = parts
  const remembering = rememberSearches(clock)
  live.addTopic('records', watchLists(store, clock.nowMs))
  app.get<{ Querystring: Fields }>('/records', async (request, reply) => {
    const query = readRecordsQuery(request.query)
    // A form sends its empty fields, too: the address that is shown, and sent to others, has none.
    if (hasEmpty(request.query)) return reply.redirect(recordsPath(query), 303)
    const searched = withSearchesNoted(remembering(await store()), parts, request.viewer)
    const view = await readRecords(searched, query, clock.nowMs())
    return sendPage(reply.code(view.problems.length > 0 ? 400 : 200), renderRecords(view, request.viewer))
  })
}

const hasEmpty = (fields: Fields) => Object.values(fields).some((value) => value === '' || Array.isArray(value))

const rowsDefault = 50
/** A page has at most this many rows, whatever its address asks for. */
export const rowsMax = 200

/** Each is read, to take the values from its reason. */
const causesOfMax = 100_000

/** Reads what an address asks for. */
export async function readRecords(store: OperatorStore, query: RecordsQuery, nowMs: number): Promise<RecordsView> {
  const read = readListFilters(query.filters, nowMs)
  // Before the list: what comes while it is read is told of later.
  const lastEventId = await store.readLastEventId()
  const view = { query, lastEventId, nowMs, skippedRows: await readSkippedRows(store, query) }
  if (read.kind === 'invalid') return { ...view, problems: read.problems, listed: null }
  return { ...view, problems: [], listed: await readListed(store, query, read) }
}

async function readListed(
  store: OperatorStore,
  query: RecordsQuery,
  read: Extract<FiltersRead, { kind: 'value' }>,
): Promise<Listed> {
  let cut: string | null = null
  const filter = await narrowByText(store, read, (message) => {
    cut = message
  })
  if (query.byCause) return { kind: 'causes', filter, cut, ...(await store.readCauses(filter, causesOfMax)) }
  const limit = Math.min(read.limit ?? rowsDefault, rowsMax)
  const [page, total] = await Promise.all([
    store.selectPage(filter, { order: query.order, from: query.from, limit }),
    store.count(filter, countedMax + 1),
  ])
  return { kind: 'page', filter, cut, page, total }
}

const problemsRead = 200

async function readSkippedRows(store: OperatorStore, { filters, from }: RecordsQuery): Promise<string[]> {
  const isDefault = Object.keys(filters).length === 0 && from === null
  return isDefault ? skippedRowMessages(await store.readProblems(problemsRead)) : []
}
