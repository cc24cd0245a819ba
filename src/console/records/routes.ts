import type { FastifyInstance } from 'fastify'
import { layout } from '../html/layout.ts'
import { empty } from '../html/notice.ts'
import type { ConsoleParts } from '../parts.ts'

/** `/records`: submissions by the filters of outboxd list. */
export function recordsRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  app.get('/records', async ({ viewer }, reply) => {
    await parts.store()
    return reply
      .type('text/html; charset=utf-8')
      .send(layout({ title: 'Records', current: '/records', viewer }, empty('Nothing is here yet.')))
  })
}
