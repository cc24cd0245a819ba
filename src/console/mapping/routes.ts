import type { FastifyInstance } from 'fastify'
import { layout } from '../html/layout.ts'
import { empty } from '../html/notice.ts'
import type { ConsoleParts } from '../parts.ts'

/** `/mapping`: the mapping files, and what a payload becomes by them. */
export function mappingRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  app.get('/mapping', async ({ viewer }, reply) => {
    await parts.store()
    return reply
      .type('text/html; charset=utf-8')
      .send(layout({ title: 'Mapping', current: '/mapping', viewer }, empty('Nothing is here yet.')))
  })
}
