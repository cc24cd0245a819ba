import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { z } from 'zod'
import type { CurrentSettings } from '../currentSettings.ts'
import type { Parts } from '../exchange.ts'
import { faultSchema } from '../faults/faults.ts'
import { isoTime, latestClockUs, type SandboxClock } from '../sandboxClock.ts'
import { clientPatchSchema, type SettingsPatch, settingsPatchSchema, windowSecondsSchema } from '../sandboxSettings.ts'
import { expectationRoutes } from '../scenario/expectations.ts'
import type { Expectation } from '../scenario/scenarioSchema.ts'
import { isEntryRefused } from '../storage/journal.ts'
import { DatabaseAway } from '../storage/sandboxDatabase.ts'
import { BeyondBounds, createClientIdSchema, readJson, readQuery, sendRefusal, streamRows } from './controlAnswers.ts'
import { guardControl } from './controlGuard.ts'
import * as reads from './controlQueries.ts'
import { readRequestRate } from './controlQueries.ts'
import * as lists from './listRows.ts'
import { processingRoutes } from './processingRoutes.ts'

interface Controls {
  parts: Parts
  /** Separate connections, so that a read of the whole ledger does not delay requests. */
  pool: pg.Pool
  settings: CurrentSettings
  reset(client: string | null, everything: boolean): Promise<void>
  token: string | undefined
  expectations: readonly Expectation[]
}

const limit = z.coerce.number().int().min(1).max(1_000_000)
const ledgerQuery = {
  since: z.coerce.number().int().min(0).default(0),
  last: limit.optional(),
  limit: limit.default(1000),
  endpoint: z.string().nullable().default(null),
  idempotencyKey: z.string().nullable().default(null),
}
const limitQuery = { limit: limit.default(1000) }
const rateQuery = { windowSeconds: z.coerce.number().pipe(windowSecondsSchema).optional() }
const resetQuery = { everything: z.stringbool().default(false) }
const idParameter = z.object({ id: z.coerce.number().int() })

/** Serves /_sandbox/ (docs/start/sandbox.md). Its requests neither count nor enter the ledger. */
export async function controlRoutes(app: FastifyInstance, controls: Controls): Promise<void> {
  const { parts, pool } = controls
  const { clients } = parts
  const clientOf = (query: unknown) => readQuery(clients, query, {}).client
  app.addHook('onRequest', guardControl(controls.token))
  app.setErrorHandler(async (error, request, reply) => {
    if (error instanceof z.ZodError) return sendRefusal(reply, 400, z.prettifyError(error))
    if (error instanceof BeyondBounds) return sendRefusal(reply, 400, error.message)
    if (error instanceof SyntaxError) return sendRefusal(reply, 400, 'The body is not JSON.')
    if (error instanceof DatabaseAway) {
      parts.outage.reportDown(error)
      return sendRefusal(reply, 503, `The database cannot be used: ${error.message}`)
    }
    if (isEntryRefused(error)) return sendRefusal(reply, 400, 'The request has a value that Postgres cannot store.')
    process.stderr.write(
      `sandbox: ${request.method} ${request.routeOptions.url}: ${error instanceof Error ? error.stack : error}\n`,
    )
    return sendRefusal(reply, 500, 'The sandbox failed. Its stderr has the error.')
  })

  app.get('/health', { config: { isOpen: true } }, async (_request, reply) => {
    const health = await readHealth(parts.pool)
    return reply.code(health.status === 'ok' ? 200 : 503).send(health)
  })
  app.get('/ledger', async ({ query }, reply) => {
    await parts.journal.idle()
    const { last, ...filter } = readQuery(clients, query, ledgerQuery)
    if (last === undefined) return streamRows(reply, lists.ledgerRows(pool, filter))
    const since = await lists.findSequenceBeforeNewestRows(pool, { ...filter, limit: last })
    return streamRows(reply, lists.ledgerRows(pool, { ...filter, since, limit: last }))
  })
  app.delete('/ledger', async ({ query }) => {
    const { client, everything } = readQuery(clients, query, resetQuery)
    await controls.reset(client, everything)
    return { forgotten: true }
  })
  app.get('/counts', async ({ query }) => ({ rows: await reads.readRequestCounts(pool, clientOf(query)) }))
  app.get('/transactions', ({ query }, reply) =>
    streamRows(reply, lists.transactionRows(pool, readQuery(clients, query, limitQuery))),
  )
  app.get('/orders', ({ query }, reply) =>
    streamRows(reply, lists.orderRows(pool, readQuery(clients, query, limitQuery))),
  )
  app.get('/rate', async ({ query }) => {
    const { client, windowSeconds } = readQuery(clients, query, rateQuery)
    return readRequestRate(pool, windowSeconds ?? parts.live(client).rateLimitWindowSeconds, client)
  })
  app.get('/events', ({ query }, reply) =>
    streamRows(reply, lists.eventRows(pool, readQuery(clients, query, limitQuery))),
  )

  app.get('/faults', async ({ query }) => ({ rows: parts.faults.list(clientOf(query)) }))
  app.post('/faults', async ({ body }, reply) => {
    const spec = faultSchema.parse(readJson(body))
    createClientIdSchema(clients).optional().parse(spec.client)
    return reply.code(201).send(await parts.faults.add(spec))
  })
  app.delete('/faults', async ({ query }) => ({ removed: await parts.faults.removeAll(clientOf(query)) }))
  app.delete('/faults/:id', async ({ params }, reply) => {
    const removed = await parts.faults.remove(idParameter.parse(params).id)
    return removed === 0 ? sendRefusal(reply, 404, 'There is no such fault.') : { removed }
  })

  const { settings } = controls
  const shownSettings = (client: string | null) => ({
    ...settings.of(client),
    changed: Object.keys(settings.changed(client)),
  })
  app.get('/settings', async ({ query }) => shownSettings(clientOf(query)))
  app.patch('/settings', async ({ query, body }) => {
    const client = clientOf(query)
    const patch = client === null ? settingsPatchSchema : clientPatchSchema
    await settings.change(client, patch.parse(readJson(body)) as SettingsPatch)
    return shownSettings(client)
  })
  app.delete('/settings', async ({ query }) => {
    const client = clientOf(query)
    await settings.resetChanges(client)
    return shownSettings(client)
  })
  clockRoutes(app, parts.clock)
  processingRoutes(app, parts)
  expectationRoutes(app, controls)
  app.post('/tokens/revoke', async ({ query }) => {
    await parts.tokens.revoke(clientOf(query))
    return { revoked: true }
  })
}

const advanceSchema = z.strictObject({
  advanceSeconds: z.number().min(0, 'the clock cannot go back; DELETE /_sandbox/ledger?everything=true resets it'),
})

function clockRoutes(app: FastifyInstance, clock: SandboxClock): void {
  app.get('/clock', async () => clock.read())
  app.post('/clock', async ({ body }, reply) => {
    const { advanceSeconds } = advanceSchema.parse(readJson(body))
    if (await clock.advance(advanceSeconds)) return clock.read()
    return sendRefusal(reply, 400, `The clock cannot go beyond ${isoTime(latestClockUs)}.`)
  })
}

/** Less than the timeout of a container's health check. */
const patienceMs = 2_000

type Health = { status: 'ok' } | { status: 'unavailable'; reason: string }

/** Never throws. */
async function readHealth(pool: pg.Pool): Promise<Health> {
  const late = new AbortController()
  const isAlive = pool.query('select 1').then(
    () => true,
    () => false,
  )
  const isInTime = await Promise.race([isAlive, delay(patienceMs, false, { signal: late.signal })])
  late.abort()
  return isInTime ? { status: 'ok' } : { status: 'unavailable', reason: 'The database does not answer.' }
}
