import { systemClock } from '../clock.ts'
import {
  type CredentialKind,
  connectionCredentialKinds,
  credentialKinds,
  readConfig,
  readCredentials,
  readDatabaseUrl,
} from '../config.ts'
import { type App, type AppDeps, startApp } from '../daemon/app.ts'
import { createReloadableFiles } from '../daemon/reloadableFiles.ts'
import { createLog, type Log } from '../observe/log.ts'
import { openStdout } from '../observe/logDestination.ts'
import { createMetrics } from '../observe/metrics.ts'
import { findEarliestExpiryEpochMs, isCertificateValidAt } from '../pem.ts'
import { createReloadableCredentials } from '../service/reloadableCredentials.ts'
import { version } from '../version.ts'
import type { CommandModule } from './terminal/command.ts'
import { type CommandContext, untilAborted } from './terminal/context.ts'
import { findMistypedVariables, findUnsafeNodeOptions } from './terminal/environment.ts'

/** The exit code if the outcome of a request could not be read or written. */
const leftInDoubt = 1

/** Credentials are read this often, to report a broken file before another daemon starts with it. */
const lookEveryMs = 60_000

const namesOfParts: Record<CredentialKind, string> = {
  secret: 'client id or secret',
  authority: 'SERVICE_CA_FILE',
  certificate: 'client certificate',
  proxy: 'SERVICE_PROXY',
}

export const command: CommandModule = {
  action: run,
  description: 'run the daemon: read the outbox, submit, track, write the outcome back',
  help: `Logs JSON lines on stdout, and serves /metrics, /livez and /readyz on HTTP_HOST:HTTP_PORT. You can run several instances on the
same databases.

SIGHUP reads the mapping files, outbox.yaml, secrets and certificates again. If they are wrong, the daemon keeps the previous
ones, and \`outboxd status\` says so. Renewed certificates and secrets are also noticed without a signal.

On SIGTERM the daemon takes on no new work, waits for the answers to its requests, writes them, and exits with 0. If the
database does not answer for ten minutes, it exits with 1. A second SIGTERM ends it at once, with 1.`,
}

/**
 * Runs the daemon until the signal is aborted.
 * @throws ConfigInvalid, FilesInvalid, AddressUnusable, DatabaseUnusable
 */
export async function run(context: CommandContext): Promise<number> {
  for (const mistyped of findMistypedVariables(context.env)) context.stderr.write(`outboxd: warning: ${mistyped}\n`)
  const config = readConfig(context.env)
  const metrics = createMetrics({ version, clock: systemClock })
  const log = createLog(config.logLevel, openStdout(config.logFormat, context.env.JOURNAL_STREAM))
  using _ = { [Symbol.dispose]: log.flush }
  for (const detail of findUnsafeNodeOptions(context.env)) log.warn('Node option endangers secrets', { detail })
  const { proxy } = config.service
  if (proxy !== null) log.info('requests to the service go through a proxy', { detail: new URL(proxy).host })
  let otherTable = Promise.withResolvers<void>()
  let app: App | null = null
  const files = createReloadableFiles(config.mappingsDir, {
    onLoaded(mappings, isOtherTable) {
      metrics.mappingsLoaded(mappings.keys(), systemClock.nowMs())
      log.info('mapping files were reloaded', { count: mappings.size })
      if (isOtherTable) otherTable.resolve()
    },
    onBroken(error) {
      metrics.mappingsBroken()
      log.error('mapping files are broken: the daemon keeps the previous ones', { error })
    },
    onRefused(error) {
      metrics.mappingsBroken()
      log.error('outbox.yaml does not fit the table: the daemon keeps all previous files', { error })
    },
    tryTable: async (table) =>
      app === null
        ? new Error('the daemon is still starting and could not try the table: run `outboxd reload` again')
        : app.tryOutboxTable(table),
  })
  metrics.mappingsLoaded(files.mappings().keys(), systemClock.nowMs())
  const credentials = createReloadableCredentials({
    credentials: config.service,
    nowMs: systemClock.nowMs,
    read: (part) => readCredentials(context.env, part),
    isValidAt: isCertificateValidAt,
    onRenewed(part, { cert, ca }) {
      metrics.certificateExpiry.set(findEarliestExpiryEpochMs(cert), { certificate: 'client' })
      metrics.certificateExpiry.set(findEarliestExpiryEpochMs(ca), { certificate: 'ca' })
      log.info(`${namesOfParts[part]} changed`)
    },
    onBroken: (part, detail) =>
      log.error(`${namesOfParts[part]} cannot be used: the daemon keeps the previous one`, { detail }),
  })
  const reload = async () => {
    credentials.renew(credentialKinds)
    const problems = [credentials.broken(), await files.reload()].filter((problem) => problem !== null)
    return problems.length === 0 ? null : problems.join('\n')
  }
  context.onReload(() => void reload())
  const looking = setInterval(() => {
    credentials.renew(credentials.broken() === null ? connectionCredentialKinds : credentialKinds)
  }, lookEveryMs)
  using __ = { [Symbol.dispose]: () => clearInterval(looking) }
  context.onCrash((error) => {
    log.error('unexpected error: the daemon ends', { error })
    log.flush()
  })
  const deps = {
    config,
    mappings: files.mappings,
    files: { ...files, reload },
    credentials,
    readDatabaseUrl: () => readDatabaseUrl(context.env),
    clock: systemClock,
    log,
    metrics,
    version,
    signal: context.signal,
  }
  return await runOneAfterAnother({
    signal: context.signal,
    log,
    async start() {
      otherTable = Promise.withResolvers()
      app = null
      app = await startUntilAborted({ ...deps, outboxTable: files.outboxTable() })
      return app
    },
    untilOtherTable: () => otherTable.promise,
  })
}

export interface DaemonTurns {
  signal: AbortSignal
  log: Pick<Log, 'info'>
  /** @returns null if the signal was aborted before the daemon had started */
  start(): Promise<Pick<App, 'stop'> | null>
  untilOtherTable(): Promise<void>
}

/**
 * Starts a daemon, and a new one each time outbox.yaml has changed.
 * @returns the exit code
 */
export async function runOneAfterAnother({ signal, log, start, untilOtherTable }: DaemonTurns): Promise<number> {
  /** False if any daemon left a record in doubt. */
  let isSettled = true
  for (;;) {
    const app = await start()
    if (app === null) return isSettled ? 0 : leftInDoubt
    await Promise.race([untilAborted(signal), untilOtherTable()])
    isSettled = (await app.stop({ beginsAgain: !signal.aborted })) && isSettled
    if (signal.aborted) return isSettled ? 0 : leftInDoubt
    log.info('outbox.yaml changed: the daemon starts again with it')
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
