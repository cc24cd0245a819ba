import type { FastifyInstance } from 'fastify'
import { layout } from '../html/layout.ts'
import { empty } from '../html/notice.ts'
import type { ConsoleParts } from '../parts.ts'

/** `/audit`: who changed what. */
export function auditRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  app.get('/audit', async ({ viewer }, reply) => {
    await parts.store()
    return reply
      .type('text/html; charset=utf-8')
      .send(layout({ title: 'Audit', current: '/audit', viewer }, empty('Nothing is here yet.')))
  })
}
