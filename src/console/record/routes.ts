import type { FastifyInstance } from 'fastify'
import { layout } from '../html/layout.ts'
import { empty } from '../html/notice.ts'
import type { ConsoleParts } from '../parts.ts'

/** `/records/:id`: what outboxd show says of one submission. */
export function recordRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  app.get('/records/:id', async ({ viewer }, reply) => {
    await parts.store()
    return reply
      .type('text/html; charset=utf-8')
      .send(layout({ title: 'A record', current: '/records', viewer }, empty('Nothing is here yet.')))
  })
}
