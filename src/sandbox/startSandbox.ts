import type pg from 'pg'
import { Clients } from './clients.ts'
import { controlRoutes } from './control/control.ts'
import { deleteAllRequests, deleteClientRequests } from './control/controlQueries.ts'
import { CurrentSettings } from './currentSettings.ts'
import type { Parts } from './exchange.ts'
import { Faults } from './faults/faults.ts'
import { reachableUrl } from './gate/addresses.ts'
import { ClientRates } from './gate/clientRates.ts'
import { Tokens } from './gate/issuedTokens.ts'
import { SeededRandom, seededKey } from './processing/seededRandom.ts'
import { SandboxClock } from './sandboxClock.ts'
import { clientSettingsOf, liveSettingsSchema, optionsSchema, type SandboxSettings } from './sandboxSettings.ts'
import { beginScenario, continueScenario, loadScenario, mergeScenario } from './scenario/readScenario.ts'
import { RecordScripts } from './scenario/recordScripts.ts'
import type { SandboxOptions, Scenario } from './scenario/scenarioSchema.ts'
import { buildServer, finishRequests } from './server.ts'
import { parseSettings } from './settingsWrong.ts'
import { findNextIdPositionByClient, readCountedArrivals } from './storage/findStored.ts'
import { Journal } from './storage/journal.ts'
import { KeyedMutex } from './storage/keyedMutex.ts'
import { runLedgerRetention } from './storage/ledgerRetention.ts'
import { OrderEvents } from './storage/orderEvents.ts'
import { Connections, controlPoolLimits, Outage, openDatabase, requestPoolLimits } from './storage/sandboxDatabase.ts'
import { prepareSchema } from './storage/sandboxSchema.ts'
import { takeServingLock } from './storage/servingLock.ts'
import { writeJournalEntries } from './storage/writeJournalEntries.ts'

export { isEveryInterface } from './gate/addresses.ts'
export { type Borrowed, type EnvironmentRead, readEnvironment, settingVariables } from './readEnvironment.ts'
export { isEmbedded, optionsSchema, type SandboxSettings } from './sandboxSettings.ts'
export type { SandboxOptions } from './scenario/scenarioSchema.ts'
export { SettingsWrong } from './settingsWrong.ts'

/** SERVICE_BASE_URL and SERVICE_AUTH_URL are both its `url`. Disposal closes it. */
export interface Sandbox extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly databaseUrl: string
  readonly clientIds: readonly string[]
  /** Names of settings changed at /_sandbox/settings, also before a restart. */
  readonly changedSettings: readonly string[]
  /**
   * Resolves with the reason when the sandbox closes itself: its PostgreSQL ended, or another sandbox has its database.
   */
  readonly failed: Promise<string>
  /** Answers what has arrived and releases the database, within 5 s. Ends an embedded PostgreSQL. */
  close(): Promise<void>
}

/**
 * Starts the service of docs/reference/interface.md as a test environment. Its state is in Postgres (schemas `sandbox`
 * and `sandbox_queue`), so it continues after a kill.
 *
 * @throws SettingsWrong, FilesInvalid for a scenario file, pg's errors if the database cannot be reached,
 * DatabaseTaken, EADDRINUSE, DataFolderUnusable
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const given = parseSettings(optionsSchema, options ?? {})
  const scenario = loadScenario(given.scenario)
  const settings = mergeScenario(given, scenario)
  const database = await openDatabase(settings)
  const lock = await takeServingLock(database.url, settings.startWaitSeconds * 1000).catch(async (error: unknown) => {
    await database.close()
    throw error
  })
  const requests = new Connections(database.url, settings.synchronousCommit, requestPoolLimits)
  const control = new Connections(database.url, settings.synchronousCommit, controlPoolLimits)
  const events = new OrderEvents(control.pool)
  const letGo = async () => {
    await events.close()
    await Promise.all([requests.end(), control.end()])
    await lock.release()
    await database.close()
  }
  const closing = new AbortController()
  try {
    await prepareSchema(lock.session)
    await events.open()
    const { parts, controls } = await assemble({
      pool: requests.pool,
      controlPool: control.pool,
      events,
      settings,
      scenario,
      closing: closing.signal,
    })
    const app = buildServer(parts, settings)
    await app.register((instance) => controlRoutes(instance, controls), { prefix: '/_sandbox' })
    // Node's default backlog of 511 loses connections of a burst.
    const { port } = new URL(
      await app.listen({ host: settings.host, port: settings.port, backlog: settings.connectionsMax }),
    )
    const { settings: current } = controls
    const retention = () => ({
      rows: current.of(null).ledgerRows,
      countedSinceUs: Math.round(parts.clock.nowUs() - current.longestWindowSeconds * 1_000_000),
    })
    void runLedgerRetention(control.pool, retention, closing.signal)
    let closed: Promise<void> | undefined
    const close = () => {
      closing.abort()
      closed ??= finishRequests(app).then(letGo)
      return closed
    }
    const closedWith = async (words: string) => {
      await close()
      return words
    }
    return {
      url: reachableUrl(settings.host, Number(port)),
      port: Number(port),
      databaseUrl: database.url,
      clientIds: parts.clients.ids,
      get changedSettings() {
        return controls.settings.changedNames
      },
      failed: Promise.race([database.failed, lock.lost]).then(closedWith),
      close,
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    await letGo()
    throw error
  }
}

interface Given {
  pool: pg.Pool
  controlPool: pg.Pool
  events: OrderEvents
  settings: SandboxSettings
  scenario: Scenario | undefined
  closing: AbortSignal
}

async function assemble({ pool, controlPool, events, settings, scenario, closing }: Given) {
  const mutex = new KeyedMutex()
  const clock = await SandboxClock.open(pool, mutex, settings.clock)
  const given = clientSettingsOf(settings)
  const clients = new Clients(given)
  const current = await CurrentSettings.open(pool, liveSettingsSchema.strip().parse(settings), given)
  const live = (client: string | null) => current.of(client)
  const rates = new ClientRates(current)
  const nowUs = clock.nowUs()
  const longestUs = current.longestWindowSeconds * 1_000_000
  for (const arrivals of await readCountedArrivals(pool, Math.round(nowUs - longestUs), nowUs)) rates.restore(arrivals)
  const random = new SeededRandom(() => live(null).seed, await findNextIdPositionByClient(pool))
  const faults = new Faults(pool, random)
  await faults.load()
  await continueScenario(pool, faults, scenario)
  const secrets = given.map(({ secret }) => secret)
  const givenKey = settings.seed === null ? undefined : seededKey(settings.seed, secrets)
  const parts: Parts = {
    pool,
    clock,
    live,
    clients,
    bodyLimitBytes: settings.bodyLimitBytes,
    tokens: await Tokens.open({ pool, clock, random, live, clients }, givenKey),
    rates,
    faults,
    scripts: new RecordScripts(pool, scenario?.records ?? []),
    journal: new Journal((entries) => writeJournalEntries(pool, events, entries)),
    outage: new Outage(closing),
    mutex,
    random,
    closing,
  }
  const resetAll = async (everything: boolean) => {
    await deleteAllRequests(controlPool, everything)
    if (!everything) return
    random.restart(null)
    await clock.setBack()
    if (scenario) await beginScenario(pool, faults, scenario)
  }
  const resetClient = async (client: string, everything: boolean) => {
    await deleteClientRequests(controlPool, client, everything)
    if (everything) random.restart(client)
  }
  const controls = {
    parts,
    pool: controlPool,
    settings: current,
    async reset(client: string | null, everything: boolean) {
      await parts.journal.idle()
      if (client === null) await resetAll(everything)
      else await resetClient(client, everything)
      rates.clear(client)
    },
    token: settings.controlToken,
    expectations: scenario?.expectations ?? [],
  }
  return { parts, controls }
}
