import type { FastifyInstance } from 'fastify'
import { Refused } from './refused.ts'

/** U+0000 stands in no text of a database: whoever sends it is told so, and no database is asked for it. */
export function refuseUnstorable(app: FastifyInstance): void {
  app.addHook('preHandler', async ({ params, query, body }) => {
    if (holdsNul([params, query, body]))
      throw new Refused(400, 'What was sent holds the character U+0000, which no text in a database has: leave it out.')
  })
}

function holdsNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0')
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsNul)
}
