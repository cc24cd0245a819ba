import { hostname } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { noteInstanceStopped } from '../ledger/instances.ts'
import { type HttpServer, startHttpServer } from '../observe/httpServer.ts'
import { loopNames } from '../observe/metricRows.ts'
import { redactError } from '../observe/redact.ts'
import { SpanExporter } from '../observe/spanExporter.ts'
import { Telemetry } from '../observe/telemetry.ts'
import { Tracing, toAttributes } from '../observe/tracing.ts'
import type { OutboxTable } from '../outbox/outboxTable.ts'
import { findEarliestExpiryEpochMs } from '../pem.ts'
import { findCollationChange } from '../postgres/collationVersion.ts'
import { isTransientError } from '../postgres/database.ts'
import { createServiceClient } from '../service/client.ts'
import { requestOutcomeOf } from '../service/readAnswer.ts'
import type { ReloadableCredentials } from '../service/reloadableCredentials.ts'
import type { DaemonContext } from './context.ts'
import { HostWatch } from './dispatch/hostWatch.ts'
import { type InstanceDatabases, openAndBindInstanceDatabases } from './instanceDatabases.ts'
import { createWakeup, LoopHealth } from './loop.ts'
import { type Loops, startLoops } from './loops.ts'

export interface AppDeps extends Pick<DaemonContext, 'mappings' | 'clock' | 'log' | 'metrics'> {
  /** As this daemon was given it. */
  config: Config
  outboxTable: OutboxTable
  credentials: ReloadableCredentials
  /** The same for all daemons that this process starts one after the other. */
  instanceId: string
  /** How long to wait at the start for a database that does not answer. */
  patienceMs: number
  version: string
  signal: AbortSignal
}

export interface App {
  http: HttpServer
  /** Resolves when the ledger's settings are no longer those that this daemon acts on. */
  otherSettings: Promise<void>
  /**
   * Stops claiming, waits until the outcomes of all requests in flight are written, and closes everything.
   *
   * @param next what follows in this process. Before another daemon the instance does not sign off, because it keeps
   *   the ledger's settings.
   * @throws Error if outcomes are missing for ten minutes and another daemon should follow. Then the process must end,
   *   so that records and settings are free for the daemon that the supervisor starts
   */
  stop(next?: 'exit' | 'another daemon'): Promise<void>
}

/** Nobody asked the daemon to stop, so no second signal and no supervisor would end its wait for outcomes. */
const turnPatienceMs = 600_000

/**
 * Claims work last, so that a failed start has claimed nothing.
 *
 * @throws AddressUnusable, OutboxMismatch, ServiceMismatch, or Error if a database cannot be used
 */
export async function startApp(deps: AppDeps): Promise<App> {
  const { clock, log, metrics, credentials, version } = deps
  await using opened = new AsyncDisposableStack()
  let waitsFor = 'the daemon is starting'
  let loops: Loops | null = null
  const http = await startHttpServer({
    ...deps.config.http,
    metrics,
    live: () => loops?.live() ?? { reasons: [] },
    ready: () => loops?.ready() ?? { reasons: [waitsFor], pauses: [] },
  })
  opened.defer(() => http.close())
  log.info('listening', { port: http.port })

  const exporter = deps.config.tracing && createSpanExporter(deps.config.tracing, deps)
  opened.defer(() => exporter?.close())

  const wakeups = Object.fromEntries(loopNames.map((name) => [name, createWakeup()])) as DaemonContext['wakeups']
  const databases = await openPatiently(deps, wakeups, (why) => {
    waitsFor = why
  })
  opened.defer(() => databases.close())
  let goesOn = false
  opened.defer(async () => {
    if (!goesOn)
      await noteInstanceStopped(databases.heartbeats, deps.instanceId).catch((error: unknown) =>
        log.warn('instance could not sign off: other instances take over its work after 5 s', { error }),
      )
  })
  const { config, differences } = databases
  if (differences !== '')
    log.warn(
      'settings differ from those of the ledger: this daemon sends and polls by the ledger’s, and captures and writes back nothing until no other daemon has them',
      { detail: differences },
    )
  metrics.certificateExpiry.set(findEarliestExpiryEpochMs(credentials.now().cert), { certificate: 'client' })
  metrics.certificateExpiry.set(findEarliestExpiryEpochMs(credentials.now().ca), { certificate: 'ca' })
  const host = new HostWatch(clock)
  const client = createServiceClient({
    service: config.service,
    credentials: credentials.now,
    maxInFlight: config.maxInFlight,
    clock,
    onAnswer: (answer) => host.note(answer),
    onCertificate: (expiresAtMs) => metrics.certificateExpiry.set(expiresAtMs, { certificate: 'service' }),
  })
  opened.defer(() => client.close())
  const { baseUrl } = config.service
  const tracing = exporter && new Tracing({ exporter, baseUrl, nowMs: clock.nowMs })
  const otherSettings = Promise.withResolvers<void>()
  const daemon: DaemonContext = {
    ...deps,
    config,
    beginAnew: otherSettings.resolve,
    telemetry: new Telemetry({
      log,
      metrics,
      outcomeOf: requestOutcomeOf,
      contract: config.discoveredContract,
      tracing,
    }),
    ...{ databases, client, host, wakeups },
    health: new LoopHealth({ nowMs: clock.nowMs, monotonicMs: () => performance.now() }),
  }
  const collation = await findCollationChange(databases.ledger).catch(() => null)
  if (collation !== null) log.warn(collation)

  const running = await startLoops(daemon)
  loops = running
  opened.defer(() => running.stop(goesOn ? turnPatienceMs : Number.POSITIVE_INFINITY))
  log.info('running', { port: http.port, version })
  const all = opened.move()
  return {
    http,
    otherSettings: otherSettings.promise,
    async stop(next = 'exit') {
      log.info('stopping')
      goesOn = next === 'another daemon'
      await all.disposeAsync()
      log.info('stopped')
    },
  }
}

function createSpanExporter(
  { serviceName, ...address }: NonNullable<Config['tracing']>,
  { version, instanceId, log, metrics }: Pick<AppDeps, 'version' | 'instanceId' | 'log' | 'metrics'>,
): SpanExporter {
  const resource = { 'service.name': serviceName, 'service.version': version, 'service.instance.id': instanceId }
  return new SpanExporter(address, toAttributes(resource), { log, dropped: (count) => metrics.spansDropped.add(count) })
}

const tryAgainMs = 1_000

/** Tries again, because the databases may be restarting together with the daemon. */
async function openPatiently(
  deps: AppDeps,
  wakeups: DaemonContext['wakeups'],
  onWaiting: (why: string) => void,
): Promise<InstanceDatabases> {
  const { config, credentials, outboxTable, mappings, clock, log, signal, patienceMs, version, instanceId } = deps
  const elapsedMs = clock.stopwatch()
  for (;;) {
    try {
      return await openAndBindInstanceDatabases({
        config,
        databaseUrl: () => credentials.now().databaseUrl,
        mappings,
        outboxTable,
        instance: { id: instanceId, who: `daemon ${instanceId.slice(0, 8)}`, version, host: hostname() },
        onNotice: wakeups.capture.wake,
        onError: (error) => log.warn('database connection broke', { error }),
      })
    } catch (error) {
      if (!isTransientError(error) || elapsedMs() > patienceMs) throw error
      log.warn('database did not answer: the daemon tries again', { error })
      onWaiting(`the daemon waits for a database: ${redactError(error).message}`)
      await setTimeout(tryAgainMs, undefined, { signal })
    }
  }
}
