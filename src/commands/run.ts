import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import {
  type CredentialKind,
  connectionCredentialKinds,
  credentialKinds,
  readConfig,
  readCredentials,
} from '../config.ts'
import { type App, type AppDeps, startApp } from '../daemon/app.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import { createLog, type Log } from '../observe/log.ts'
import { openStdout } from '../observe/logDestination.ts'
import { createMetrics } from '../observe/metrics.ts'
import { loadOutboxTable } from '../outbox/readOutboxFile.ts'
import { findEarliestExpiryEpochMs } from '../pem.ts'
import { createReloadableCredentials } from '../service/reloadableCredentials.ts'
import { version } from '../version.ts'
import type { CommandModule } from './terminal/command.ts'
import { type CommandContext, untilAborted } from './terminal/context.ts'
import { findMistypedVariables, findUnsafeNodeOptions } from './terminal/environment.ts'

/** Certificates, the proxy and the database's URL are read again this often. The secret is read again when the issuer refuses it. */
const lookEveryMs = 10_000

const namesOfParts: Record<CredentialKind, string> = {
  secret: 'client id or secret',
  authority: 'SERVICE_CA_FILE',
  certificate: 'client certificate',
  proxy: 'SERVICE_PROXY',
  database: 'DATABASE_URL',
}

export const command: CommandModule = {
  action: run,
  description: 'run the daemon: read the outbox, submit, track, write the outcome back',
  help: `Logs JSON lines on stdout, and serves /metrics, /livez and /readyz on HTTP_HOST:HTTP_PORT. You can run several instances on the
same databases.

Mapping files and outbox.yaml are read at the start. Renewed certificates and secrets are read again while it runs. The ledger keeps
the settings that all daemons share: a daemon with other ones, or with other files, sends and polls, but captures and writes back
nothing until the last daemon with the ledger's has stopped (docs/run/operations.md).

On SIGTERM, SIGINT or SIGHUP the daemon takes on no new work, waits for the answers to its requests, writes them, and exits
with 0. A second SIGTERM ends it at once, with 1.`,
}

/**
 * Runs the daemon until the signal is aborted.
 * @throws ConfigInvalid, FilesInvalid, AddressUnusable, DatabaseUnusable
 */
export async function run(context: CommandContext): Promise<number> {
  for (const mistyped of findMistypedVariables(context.env)) context.stderr.write(`outboxd: warning: ${mistyped}\n`)
  const config = readConfig(context.env)
  const metrics = createMetrics({ version, installation: config.shared.INSTALLATION_NAME ?? '', clock: systemClock })
  const log = createLog(
    config.logLevel,
    openStdout(config.logFormat, context.env.JOURNAL_STREAM, () => metrics.logWriteFailures.add(1)),
    config.tracing !== null,
  )
  using _ = { [Symbol.dispose]: log.flush }
  for (const detail of findUnsafeNodeOptions(context.env)) log.warn('Node option endangers secrets', { detail })
  const { proxy } = config.service
  if (proxy !== null) log.info('requests to the service go through a proxy', { detail: new URL(proxy).host })
  const mappings = loadMappings(config.mappingsDir)
  const outboxTable = loadOutboxTable(config)
  metrics.mappingsLoaded(mappings.keys())
  const credentials = createReloadableCredentials({
    credentials: { ...config.service, databaseUrl: config.databaseUrl },
    read: (part) => readCredentials(context.env, part),
    onRenewed(part, { cert, ca }) {
      metrics.certificateExpiry.set(findEarliestExpiryEpochMs(cert), { certificate: 'client' })
      metrics.certificateExpiry.set(findEarliestExpiryEpochMs(ca), { certificate: 'ca' })
      log.info(`${namesOfParts[part]} changed`)
    },
    onBroken: (part, detail) =>
      log.error(`${namesOfParts[part]} cannot be used: the daemon keeps the previous one`, { detail }),
  })
  const looking = setInterval(() => {
    credentials.renew(credentials.broken() === null ? connectionCredentialKinds : credentialKinds)
  }, lookEveryMs)
  using __ = { [Symbol.dispose]: () => clearInterval(looking) }
  context.onCrash((error) => {
    log.error('unexpected error: the daemon ends', { error })
    log.flush()
  })
  const deps = {
    ...{ config, mappings, outboxTable, credentials },
    instanceId: randomUUID(),
    clock: systemClock,
    log,
    metrics,
    version,
    signal: context.signal,
  }
  await runOneAfterAnother({
    signal: context.signal,
    log,
    random: Math.random,
    start: (patienceMs) => startUntilAborted({ ...deps, patienceMs }),
  })
  return 0
}

/** A database that does not answer the first start for longer is a mistake that a person sees. Later it is an outage. */
const firstPatienceMs = 30_000

/** The daemons of a ledger take up its new settings within this time, each at a random moment, so that some always send. */
const turnMaxMs = 10_000

export interface DaemonTurns {
  signal: AbortSignal
  log: Pick<Log, 'info'>
  random(): number
  /**
   * @param patienceMs how long to wait for a database that does not answer
   * @returns null if the signal was aborted before the daemon had started
   */
  start(patienceMs: number): Promise<Pick<App, 'stop' | 'otherSettings'> | null>
}

/** Starts a daemon, and a new one each time the ledger gets other settings. */
export async function runOneAfterAnother({ signal, log, random, start }: DaemonTurns): Promise<void> {
  // Once, because each call leaves a listener on the signal.
  const aborted = untilAborted(signal)
  for (let patienceMs = firstPatienceMs; ; patienceMs = Number.POSITIVE_INFINITY) {
    const app = await start(patienceMs)
    if (app === null) return
    await Promise.race([aborted, app.otherSettings])
    await setTimeout(random() * turnMaxMs, undefined, { signal }).catch(() => {})
    await app.stop(signal.aborted ? 'exit' : 'another daemon')
    if (signal.aborted) return
    log.info('ledger has other settings: the daemon starts again with these')
  }
}

async function startUntilAborted(deps: AppDeps): Promise<App | null> {
  try {
    return await startApp(deps)
  } catch (error) {
    if (!deps.signal.aborted) throw error
    deps.log.info('daemon was stopped before it had started')
    return null
  }
}
