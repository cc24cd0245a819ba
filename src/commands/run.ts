import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { findMistypedVariables } from '../cli/mistypedVariables.ts'
import { systemClock } from '../clock.ts'
import { readConfig } from '../config.ts'
import { type App, type AppDeps, startApp } from '../daemon/app.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import { createLog } from '../observe/log.ts'
import { openStdout } from '../observe/logDestination.ts'
import { createMetrics } from '../observe/metrics.ts'
import { loadOutboxFile } from '../outbox/loadOutboxFile.ts'
import { version } from '../version.ts'

/** Some record's outcome could not be found out or written. */
const leftInDoubt = 1

export function describeRun(command: Command): Command {
  return command.description('run the daemon: read the outbox, submit, track, write the outcome back').addHelpText(
    'after',
    `
Logs JSON lines on stdout, for journald with priorities (LOG_FORMAT); a warning that repeats itself is counted: one line
a minute says how often ("repeated"). Serves /metrics, /livez and /readyz on HTTP_HOST:HTTP_PORT.
SIGHUP reads the mapping files again; where they are broken, those read before stay in force.
SIGTERM stops taking on work, waits until all in flight has ended and is written, and leaves with 0: at once, as a rule; with
a database that does not answer, when it does, or after ten minutes with 1. A second SIGTERM leaves at once, with 1.
Any number of instances may run on the same databases.`,
  )
}

/** Runs until the context's signal is aborted. @throws ConfigInvalid, FilesInvalid, AddressUnusable, Error when a database is unusable */
export async function run(context: CommandContext): Promise<number> {
  for (const mistyped of findMistypedVariables(context.env)) context.stderr.write(`outboxd: warning: ${mistyped}\n`)
  const config = readConfig(context.env)
  const metrics = createMetrics({ version })
  let mappings = loadMappings(config.mappingsDir)
  metrics.mappingsLoaded(mappings.keys(), systemClock.nowMs())
  const log = createLog(config.logLevel, openStdout(config.logFormat, context.env.JOURNAL_STREAM))
  using _ = { [Symbol.dispose]: log.flush }
  context.onReload(() => {
    try {
      mappings = loadMappings(config.mappingsDir)
      metrics.mappingsLoaded(mappings.keys(), systemClock.nowMs())
      log.info('read the mapping files again', { count: mappings.size })
    } catch (error) {
      metrics.mappingsBroken()
      log.error('the mapping files are broken; those read before stay in force', { error })
    }
  })
  context.onCrash((error) => log.error('an unexpected error: leaving', { error }))
  const app = await startUntilAborted(context.signal, {
    config,
    outboxTable: loadOutboxFile(config.mappingsDir),
    mappings: () => mappings,
    clock: systemClock,
    log,
    metrics,
    version,
  })
  if (app === null) return 0
  await aborted(context.signal)
  return (await app.stop()) ? 0 : leftInDoubt
}

/** @returns null where it was told to leave before it had begun */
async function startUntilAborted(signal: AbortSignal, deps: Omit<AppDeps, 'signal'>): Promise<App | null> {
  try {
    return await startApp({ ...deps, signal })
  } catch (error) {
    if (!signal.aborted) throw error
    deps.log.info('told to leave before it had begun')
    return null
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
