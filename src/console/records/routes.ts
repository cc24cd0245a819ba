import type { FastifyInstance } from 'fastify'
import { sendPage } from '../html/sendPage.ts'
import { withSearchesNoted } from '../noteSight.ts'
import type { ConsoleParts } from '../parts.ts'
import { readRecords } from './readRecords.ts'
import { renderRecords } from './recordsHtml.ts'
import { type Fields, readRecordsQuery, recordsPath } from './recordsQuery.ts'
import { rememberSearches } from './rememberSearches.ts'
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
