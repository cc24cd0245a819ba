import type pg from 'pg'
import { ClientLookup } from './clients.ts'
import { type Controls, registerControlRoutes } from './control/control.ts'
import { deleteAllRequests, deleteClientRequests, deleteOldRequests } from './control/controlQueries.ts'
import { createSequentialRunner, type SandboxParts } from './exchange.ts'
import { openFaultStore } from './faults/faults.ts'
import { toReachableUrl } from './gate/addresses.ts'
import { ClientRateLimits } from './gate/clientRateLimits.ts'
import { createTokenIssuer } from './gate/tokenIssuer.ts'
import { createSeededRandom, deriveSigningKey } from './processing/seededRandom.ts'
import { createSandboxClock } from './sandboxClock.ts'
import {
  listClientSettings,
  liveSettingsSchema,
  optionsSchema,
  parseSettings,
  type SandboxSettings,
} from './sandboxSettings.ts'
import { applyScenarioSettings, ensureScenarioStarted, loadScenario, startScenario } from './scenario/readScenario.ts'
import { ScriptRunner } from './scenario/recordScripts.ts'
import type { SandboxOptions, Scenario } from './scenario/scenarioSchema.ts'
import { buildServer, finishRequestsAndClose } from './server.ts'
import { openSettingsStore } from './settingsStore.ts'
import { readCountedArrivals, readNextRandomPositionByClient } from './storage/findStored.ts'
import { type OrderEventQueue, openOrderEventQueue } from './storage/orderEvents.ts'
import { endPool, openDatabase, openPool } from './storage/sandboxDatabase.ts'
import { prepareSchema } from './storage/sandboxSchema.ts'
import { takeServingLock } from './storage/servingLock.ts'

export type { SandboxOptions } from './scenario/scenarioSchema.ts'

/** Disposal closes it. */
export interface Sandbox extends AsyncDisposable {
  /** For SERVICE_BASE_URL and SERVICE_AUTH_URL. */
  readonly url: string
  readonly port: number
  readonly databaseUrl: string
  readonly clientIds: readonly string[]
  readonly changedSettings: readonly string[]
  /**
   * Resolves with the reason when the sandbox closes itself: its PostgreSQL ended or another sandbox took its database.
   */
  readonly failed: Promise<string>
  /** Within 5 s, answers the requests that have arrived, releases the database and ends an embedded PostgreSQL. */
  close(): Promise<void>
}

const trimmingMs = 60_000

/**
 * Starts a test environment of the service in docs/reference/interface.md. Its state is in Postgres (schemas `sandbox`
 * and `sandbox_queue`), so that the next start continues it, even after a kill.
 *
 * @throws SettingsWrong, FilesInvalid for a scenario file, pg's errors if the database cannot be reached, Error if
 * another sandbox serves the database, EADDRINUSE, Error of an embedded server
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const given = parseSettings(optionsSchema, options ?? {})
  const scenario = loadScenario(given.scenario)
  const settings = applyScenarioSettings(given, scenario)
  await using stack = new AsyncDisposableStack()
  const database = await openDatabase(settings)
  stack.defer(() => database.stop())
  const lock = await takeServingLock(database.url, settings.startWaitSeconds * 1000)
  stack.defer(() => lock.release())
  const pool = openPool(database.url, settings.synchronousCommit)
  stack.defer(() => endPool(pool))
  await prepareSchema(lock.session)
  const events = await openOrderEventQueue(pool)
  stack.defer(() => events.close())
  const closing = new AbortController()
  const controls = await assemble(pool, events, settings, scenario, closing.signal)
  const { parts, settings: current } = controls
  const app = buildServer(parts, settings)
  await app.register((instance) => registerControlRoutes(instance, controls), { prefix: '/_sandbox' })
  // Node's default backlog of 511 would lose connections if more clients connect at once.
  const address = await app.listen({ host: settings.host, port: settings.port, backlog: settings.connectionsMax })
  stack.defer(() => finishRequestsAndClose(app))
  const longestWindowUs = () => current.longestWindowSeconds() * 1_000_000
  const trim = () =>
    deleteOldRequests(pool, current.of(null).ledgerRows, parts.clock.nowUs() - longestWindowUs()).catch((error) => {
      process.stderr.write(`sandbox: old requests could not be deleted from sandbox.ledger: ${error}\n`)
    })
  const trimming = setInterval(trim, trimmingMs).unref()
  void trim()
  stack.defer(() => {
    clearInterval(trimming)
    closing.abort()
  })
  const all = stack.move()
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= all.disposeAsync()
    return closed
  }
  const port = Number(new URL(address).port)
  return {
    url: toReachableUrl(settings.host, port),
    port,
    databaseUrl: database.url,
    clientIds: parts.clients.ids,
    get changedSettings() {
      return current.changedNames()
    },
    failed: Promise.race([database.failed, lock.lost]).then(async (reason) => {
      await close()
      return reason
    }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function assemble(
  pool: pg.Pool,
  events: OrderEventQueue,
  settings: SandboxSettings,
  scenario: Scenario | undefined,
  closing: AbortSignal,
): Promise<Controls> {
  const clock = await createSandboxClock(pool, settings.clock)
  const given = listClientSettings(settings)
  const clients = new ClientLookup(given)
  const current = await openSettingsStore(pool, liveSettingsSchema.strip().parse(settings), given)
  const liveSettingsOf = (client: string | null) => current.of(client)
  const rateLimits = new ClientRateLimits(liveSettingsOf)
  for (const arrivals of await readCountedArrivals(pool, clock.nowUs() - current.longestWindowSeconds() * 1_000_000))
    rateLimits.restore(arrivals)
  const random = createSeededRandom(() => liveSettingsOf(null).seed, await readNextRandomPositionByClient(pool))
  const faults = await openFaultStore(pool, random)
  await ensureScenarioStarted(pool, faults, scenario)
  const secrets = given.map(({ secret }) => secret)
  const givenKey = settings.seed === null ? undefined : deriveSigningKey(settings.seed, secrets)
  const parts: SandboxParts = {
    ...{ pool, events, clock, liveSettingsOf, clients, rateLimits, faults, random, closing },
    bodyLimitBytes: settings.bodyLimitBytes,
    tokens: await createTokenIssuer({ pool, clock, random, liveSettingsOf, clients }, givenKey),
    scripts: new ScriptRunner(pool, scenario?.records ?? []),
    oneAtATime: createSequentialRunner(),
    databaseFailures: { count: 0 },
  }
  const reset = async (client: string | null, everything: boolean) => {
    if (client === null) await deleteAllRequests(pool, everything)
    else await deleteClientRequests(pool, client, everything)
    if (everything) random.restart(client)
    if (everything && client === null) {
      await clock.reset()
      if (scenario) await startScenario(pool, faults, scenario)
    }
    rateLimits.clear(client)
  }
  return {
    parts,
    settings: current,
    reset,
    controlToken: settings.controlToken,
    expectations: scenario?.expectations ?? [],
  }
}
