import type { FastifyInstance } from 'fastify'
import type { ConsoleParts } from '../parts.ts'
import { renderNow } from './nowHtml.ts'
import { readNow } from './readNow.ts'

/** What is read may be so old, whoever looks. */
const readEveryMs = 2_000

/** `/`: how things stand. */
export function nowRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const read = parts.live.share(async () => readNow(await parts.store(), parts.config), readEveryMs - 100)
  parts.live.addTopic('now', {
    everyMs: readEveryMs,
    readVersions: async () => new Map([['', (await read()).version]]),
  })
  app.get('/', async ({ viewer }, reply) =>
    reply.type('text/html; charset=utf-8').send(renderNow(await read(), viewer)),
  )
}
