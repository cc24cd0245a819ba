import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { isoTime, latestUs, type SandboxClock } from '../sandboxClock.ts'
import { readJson, refuse } from './controlAnswers.ts'

const advanceSchema = z.strictObject({
  advanceSeconds: z.number().min(0, 'the clock goes only on; DELETE /_sandbox/ledger?everything=true sets it back'),
})

/** /_sandbox/clock: what time it is for the sandbox, and to move it on. */
export function clockRoutes(app: FastifyInstance, clock: SandboxClock): void {
  app.get('/clock', async () => clock.read())
  app.post('/clock', async ({ body }, reply) => {
    const { advanceSeconds } = advanceSchema.parse(readJson(body))
    if (await clock.advance(advanceSeconds)) return clock.read()
    return refuse(reply, 400, `The clock goes no further than ${isoTime(latestUs)}.`)
  })
}
