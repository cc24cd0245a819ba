import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { z } from 'zod'
import { BeyondBounds, readJson, refuse } from './controlAnswers.ts'
import { clockRoutes } from './controlClock.ts'
import { courseRoutes } from './controlCourse.ts'
import { guardControl } from './controlGuard.ts'
import * as reads from './controlQueries.ts'
import type { Parts } from './exchange.ts'
import { faultSchema } from './faults.ts'
import { followEvents } from './followEvents.ts'
import { readHealth } from './health.ts'
import type { OrderEvents } from './orderEvents.ts'
import { readRate } from './readRate.ts'
import { type LiveSettings, type SettingsPatch, settingsPatchSchema } from './sandboxSettings.ts'
import { verifyRoutes } from './scenario/controlVerify.ts'
import type { Expectation } from './scenario/scenarioSchema.ts'
import { sendRows } from './sendRows.ts'
import * as shown from './shownRows.ts'

/** What the control API changes besides reading the parts. */
export interface Controls {
  parts: Parts
  /** Connections of its own, with more patience than a request has: a read of all does not hold requests up. */
  pool: pg.Pool
  events: OrderEvents
  change(patch: SettingsPatch): Promise<LiveSettings>
  /** Goes back to the settings that the sandbox was started with. */
  forgetChanges(): Promise<LiveSettings>
  changed(): SettingsPatch
  reset(everything: boolean): Promise<void>
  /** With it anybody may use them, without it only programs on this host; undefined: there is none. */
  token: string | undefined
  /** Those of the scenario. */
  expectations: readonly Expectation[]
}

const flag = z.stringbool().default(false)
const limit = z.coerce.number().int().min(1).max(1_000_000)
const ledgerQuery = z.strictObject({
  since: z.coerce.number().int().min(0).default(0),
  limit: limit.default(1000),
  endpoint: z.string().nullable().default(null),
  idempotencyKey: z.string().nullable().default(null),
})
const limitQuery = z.strictObject({ limit: limit.default(1000) })
const eventsQuery = z.strictObject({ limit: limit.default(1000), follow: flag })
const rateQuery = z.strictObject({ windowSeconds: z.coerce.number().positive().max(86_400).optional() })
const resetQuery = z.strictObject({ everything: flag })
const idParameter = z.object({ id: z.coerce.number().int() })

/**
 * /_sandbox/: what a developer or a test sees of the sandbox and tells it. JSON, behind a guard; docs/sandbox.md lists it.
 *
 * Nothing here counts against the rate limit or enters the ledger.
 */
export async function controlRoutes(app: FastifyInstance, controls: Controls): Promise<void> {
  const { parts, pool } = controls
  app.addHook('onRequest', guardControl(controls.token, parts.failures))
  app.setErrorHandler(async (error, request, reply) => {
    if (error instanceof z.ZodError) return refuse(reply, 400, z.prettifyError(error))
    if (error instanceof BeyondBounds) return refuse(reply, 400, error.message)
    if (error instanceof SyntaxError) return refuse(reply, 400, 'The body is not JSON.')
    process.stderr.write(
      `sandbox: ${request.method} ${request.routeOptions.url}: ${error instanceof Error ? error.stack : error}\n`,
    )
    return refuse(reply, 500, 'The sandbox made a mistake; its own words are on its stderr.')
  })

  app.get('/health', { config: { isOpen: true } }, async (_request, reply) => {
    const health = await readHealth(parts.pool)
    return reply.code(health.status === 'ok' ? 200 : 503).send(health)
  })
  app.get('/ledger', async ({ query }, reply) => {
    await parts.journal.idle()
    return sendRows(reply, shown.ledgerRows(pool, ledgerQuery.parse(query)))
  })
  app.delete('/ledger', async ({ query }) => {
    await controls.reset(resetQuery.parse(query).everything)
    return { forgotten: true }
  })
  app.get('/counts', async () => ({ rows: await reads.readCounts(pool) }))
  app.get('/transactions', ({ query }, reply) =>
    sendRows(reply, shown.transactionRows(pool, limitQuery.parse(query).limit)),
  )
  app.get('/orders', ({ query }, reply) => sendRows(reply, shown.orderRows(pool, limitQuery.parse(query).limit)))
  app.get('/rate', async ({ query }) => {
    const { windowSeconds } = rateQuery.parse(query)
    return readRate(pool, windowSeconds ?? parts.live().rateLimitWindowSeconds)
  })
  app.get('/events', ({ query }, reply) => {
    const { limit, follow } = eventsQuery.parse(query)
    return follow ? followEvents(controls, reply) : sendRows(reply, shown.eventRows(pool, limit))
  })

  app.get('/faults', async () => ({ rows: parts.faults.list() }))
  app.post('/faults', async ({ body }, reply) =>
    reply.code(201).send(await parts.faults.add(faultSchema.parse(readJson(body)))),
  )
  app.delete('/faults', async () => ({ removed: await parts.faults.remove() }))
  app.delete('/faults/:id', async ({ params }, reply) => {
    const removed = await parts.faults.remove(idParameter.parse(params).id)
    return removed === 0 ? refuse(reply, 404, 'There is no such fault.') : { removed }
  })

  const settings = () => ({ ...parts.live(), changed: Object.keys(controls.changed()) })
  app.get('/settings', async () => settings())
  app.patch('/settings', async ({ body }) => {
    await controls.change(settingsPatchSchema.parse(readJson(body)) as SettingsPatch)
    return settings()
  })
  app.delete('/settings', async () => {
    await controls.forgetChanges()
    return settings()
  })
  clockRoutes(app, parts.clock)
  courseRoutes(app, parts)
  verifyRoutes(app, controls)
  app.post('/tokens/revoke', async () => {
    await parts.tokens.revokeAll()
    return { revoked: true }
  })
}
