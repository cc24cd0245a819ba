import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import cron from 'node-cron'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import { slotLeaseMs } from './dispatch/purse.ts'
import { startLoops } from './loops.ts'
import type { Mappings } from './map/loadMappings.ts'
import { type HttpServer, startHttpServer } from './observe/httpServer.ts'
import type { Log } from './observe/log.ts'
import type { Metrics } from './observe/metrics.ts'
import { createWitness } from './observe/witness.ts'
import { createSending } from './sending.ts'
import { createServiceClient } from './service/client.ts'
import { outcomeOf } from './service/outcome.ts'
import { isPassing } from './store/database.ts'
import { openStore, type Store, type StoreDeps } from './store/store.ts'

export interface AppDeps {
  config: Config
  /** How to read an outbox table that is not as in design.md, section 10. */
  outboxTable?: StoreDeps['outboxTable'] | null
  /** The mappings in force; asked for each record, so that they can be exchanged while the daemon runs. */
  mappings: () => Mappings
  clock: Clock
  log: Log
  metrics: Metrics
  version: string
}

export interface App {
  readonly http: HttpServer
  /** Stops claiming, lets what is on the wire end and be written, and closes everything in reverse. */
  stop(): Promise<void>
}

/** Builds every part of the daemon once, and starts it. @throws Error when a database cannot be used as it is */
export async function startApp(deps: AppDeps): Promise<App> {
  const { config, clock, log, metrics, version } = deps
  const { requestTimeoutMs } = config.service
  const instanceId = randomUUID()
  const store = await openPatiently(
    { log, clock },
    {
      config,
      outboxTable: deps.outboxTable ?? config.outboxTable,
      instance: { id: instanceId, who: `daemon ${instanceId.slice(0, 8)}`, version, host: hostname() },
      leaseMs: slotLeaseMs(config.rateLimit.windowMs, requestTimeoutMs),
      overdueMs: 2 * requestTimeoutMs + 60_000,
      onError: (error) => log.warn('a database connection broke', { error }),
    },
  )
  const client = createServiceClient({ service: config.service, maxInFlight: config.maxInFlight, clock })
  const witness = createWitness({ log, metrics, outcomeOf })
  const sending = createSending({ config, clock, log, metrics, store, client, witness })
  const loops = startLoops({ config, mappings: deps.mappings, clock, log, metrics, store, witness, sending })
  const sweep = cron.schedule('* * * * * *', loops.capture.wake, { suppressMissedWarning: true })
  store.listen(loops.capture.wake)
  const http = await startHttpServer({ ...config.http, metrics, live: loops.live, ready: loops.ready })
  log.info('running', { port: http.port, version })

  return {
    http,
    async stop() {
      log.info('stopping')
      await sweep.stop()
      await loops.stopTaking()
      const written = await Promise.race([sending.drained().then(() => true), later(requestTimeoutMs + drainMs)])
      if (!written)
        log.error('outcomes could not be written in time: the next instance takes over', { count: sending.inFlight() })
      await loops.stop()
      await client.close()
      await store.close()
      await http.close()
      log.info('stopped')
    },
  }
}

/** What is on the wire has its own deadline; this is for writing it. */
const drainMs = 10_000

function later(ms: number): Promise<false> {
  return new Promise((resolve) => setTimeout(resolve, ms, false).unref())
}

const patienceMs = 30_000
const tryAgainMs = 1_000

/** Opens the databases; one that is just starting, too, is waited for a while. */
async function openPatiently({ log, clock }: { log: Log; clock: Clock }, deps: StoreDeps): Promise<Store> {
  const until = clock.nowMs() + patienceMs
  for (;;) {
    try {
      return await openStore(deps)
    } catch (error) {
      if (!isPassing(error) || clock.nowMs() > until) throw error
      log.warn('a database is away; it is tried again', { error })
      await new Promise((resolve) => setTimeout(resolve, tryAgainMs))
    }
  }
}
