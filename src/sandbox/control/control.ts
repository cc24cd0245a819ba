import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { SandboxParts } from '../exchange.ts'
import { faultSchema } from '../faults/faults.ts'
import { clockMaxUs, formatIsoTime } from '../sandboxClock.ts'
import { clientPatchSchema, type SettingsPatch, settingsPatchSchema, windowSecondsSchema } from '../sandboxSettings.ts'
import { checkExpectations } from '../scenario/checkExpectations.ts'
import { type Expectation, expectationSchema } from '../scenario/scenarioSchema.ts'
import type { SettingsStore } from '../settingsStore.ts'
import { DatabaseAway } from '../storage/sandboxDatabase.ts'
import { isValueRefused } from '../storage/writeRequest.ts'
import { BodyWrong, parseJsonBody, sendRefusal, sendRowsOrRefusal } from './controlAnswers.ts'
import { createControlGuard } from './controlGuard.ts'
import { readRequestCounts, readRequestRate } from './controlQueries.ts'
import * as lists from './listRows.ts'
import { registerProcessingRoutes } from './processingRoutes.ts'

export interface Controls {
  parts: SandboxParts
  settings: SettingsStore
  reset(client: string | null, everything: boolean): Promise<void>
  controlToken: string | undefined
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
const verifyBody = z.strictObject({ expectations: z.array(expectationSchema).min(1) })
const clockBody = z.strictObject({
  advanceSeconds: z.number().min(0, 'the clock cannot go back; DELETE /_sandbox/ledger?everything=true resets it'),
})

/** Serves /_sandbox/ (docs/start/sandbox.md). These requests do not count against the limit, and are not logged. */
export async function registerControlRoutes(app: FastifyInstance, controls: Controls): Promise<void> {
  const { parts, settings } = controls
  const { pool, clients, clock, faults } = parts
  // Refuses unknown client ids, because a misspelt id would look like a client without requests.
  const knownClient = z
    .string()
    .refine((id) => clients.has(id), `there is no such client; the clients are ${clients.ids.join(', ')}`)
  const readQuery = <T extends z.ZodRawShape>(query: unknown, shape: T) =>
    z.strictObject({ ...shape, client: knownClient.nullable().default(null) }).parse(query)
  const clientOf = (query: unknown) => readQuery(query, {}).client
  app.addHook('onRequest', createControlGuard(controls.controlToken))
  app.setErrorHandler(async (error, request, reply) => {
    if (error instanceof z.ZodError) return sendRefusal(reply, 400, z.prettifyError(error))
    if (error instanceof BodyWrong) return sendRefusal(reply, 400, error.message)
    if (error instanceof DatabaseAway) return sendRefusal(reply, 503, `The database cannot be used: ${error.message}`)
    if (isValueRefused(error)) return sendRefusal(reply, 400, 'The request has a value that Postgres cannot store.')
    const message = error instanceof Error ? error.stack : error
    process.stderr.write(`sandbox: ${request.method} ${request.routeOptions.url}: ${message}\n`)
    return sendRefusal(reply, 500, 'The sandbox failed. Its stderr has the error.')
  })

  app.get('/health', { config: { isOpen: true } }, async (_request, reply) => {
    const isAlive = pool.query('select 1').then(
      () => true,
      () => false,
    )
    if (await Promise.race([isAlive, delay(healthMs, false)])) return { status: 'ok' }
    return reply.code(503).send({ status: 'unavailable', reason: 'The database does not answer.' })
  })
  app.get('/ledger', async ({ query }, reply) => {
    const { last, ...filter } = readQuery(query, ledgerQuery)
    const isNewest = last !== undefined
    return sendRowsOrRefusal(
      reply,
      await lists.readRequestLog(pool, { ...filter, isNewest, limit: last ?? filter.limit }),
    )
  })
  app.delete('/ledger', async ({ query }) => {
    const { client, everything } = readQuery(query, resetQuery)
    await parts.oneAtATime(() => controls.reset(client, everything))
    return { forgotten: true }
  })
  app.get('/counts', async ({ query }) => ({ rows: await readRequestCounts(pool, clientOf(query)) }))
  app.get('/rate', async ({ query }) => {
    const { client, windowSeconds } = readQuery(query, rateQuery)
    return readRequestRate(pool, windowSeconds ?? parts.liveSettingsOf(client).rateLimitWindowSeconds, client)
  })
  for (const [path, read] of [
    ['/transactions', lists.readTransactions],
    ['/orders', lists.readOrders],
    ['/events', lists.readEvents],
  ] as const)
    app.get(path, async ({ query }, reply) => sendRowsOrRefusal(reply, await read(pool, readQuery(query, limitQuery))))
  registerProcessingRoutes(app, parts, clientOf)

  app.get('/faults', async ({ query }) => ({ rows: faults.list(clientOf(query)) }))
  app.post('/faults', async ({ body }, reply) => {
    const spec = faultSchema.parse(parseJsonBody(body))
    knownClient.optional().parse(spec.client)
    return reply.code(201).send(await faults.add(spec))
  })
  app.delete('/faults', async ({ query }) => ({ removed: await faults.removeAll(clientOf(query)) }))
  app.delete('/faults/:id', async ({ params }, reply) => {
    const removed = await faults.remove(idParameter.parse(params).id)
    return removed === 0 ? sendRefusal(reply, 404, 'There is no fault with this id.') : { removed }
  })

  const shownSettings = (client: string | null) => ({
    ...settings.of(client),
    changed: Object.keys(settings.changed(client)),
  })
  app.get('/settings', async ({ query }) => shownSettings(clientOf(query)))
  app.patch('/settings', async ({ query, body }) => {
    const client = clientOf(query)
    const patch = client === null ? settingsPatchSchema : clientPatchSchema
    await settings.change(client, patch.parse(parseJsonBody(body)) as SettingsPatch)
    return shownSettings(client)
  })
  app.delete('/settings', async ({ query }) => {
    const client = clientOf(query)
    await settings.resetChanges(client)
    return shownSettings(client)
  })

  app.get('/clock', async () => clock.read())
  app.post('/clock', async ({ body }, reply) => {
    const { advanceSeconds } = clockBody.parse(parseJsonBody(body))
    if (await parts.oneAtATime(() => clock.advance(advanceSeconds))) return clock.read()
    return sendRefusal(reply, 400, `The clock cannot go beyond ${formatIsoTime(clockMaxUs)}.`)
  })
  app.post('/tokens/revoke', async ({ query }) => {
    await parts.tokens.revoke(clientOf(query))
    return { revoked: true }
  })
  // Answers 422 if an expectation fails, so that `curl --fail-with-body` fails.
  app.post('/verify', async ({ query, body }, reply) => {
    const asked = body ? verifyBody.parse(parseJsonBody(body)).expectations : controls.expectations
    if (asked.length === 0) {
      return sendRefusal(reply, 400, 'There is nothing to verify: neither the request nor a scenario has expectations.')
    }
    const verdicts = await checkExpectations(pool, asked, clientOf(query))
    const passed = verdicts.every((verdict) => verdict.passed)
    return reply.code(passed ? 200 : 422).send({ passed, expectations: verdicts })
  })
}

/** /health waits for less than the timeout of a container's health check. */
const healthMs = 2_000
