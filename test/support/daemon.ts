import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../src/clock.ts'
import { runOneAfterAnother } from '../../src/commands/run.ts'
import { readConfig } from '../../src/config.ts'
import { startApp } from '../../src/daemon/app.ts'
import { loadMappings } from '../../src/mapping/loadMappings.ts'
import { createLog } from '../../src/observe/log.ts'
import { openStdout } from '../../src/observe/logDestination.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { loadOutboxTable } from '../../src/outbox/readOutboxFile.ts'
import { checkout, type Program, type ProgramOptions, startProgram } from './program.ts'
import { serviceEnvironment } from './serviceEnvironment.ts'

/** Folder of the mappings that are shipped. */
export const mappingsDir = join(checkout, 'mappings')

/** Environment of a daemon on this database and this service; `more` goes on top. */
export function daemonEnvironment(
  databaseUrl: string,
  serviceUrl: string,
  more: Record<string, string> = {},
): Record<string, string> & { DATABASE_URL: string } {
  return {
    DATABASE_URL: databaseUrl,
    ...serviceEnvironment(serviceUrl),
    MAPPINGS_DIR: mappingsDir,
    HTTP_PORT: '0',
    ...more,
  }
}

/** Starts `outboxd run` as a process, and waits until it logs "running". @throws Error with its last lines */
export async function startDaemonProcess(
  env: Record<string, string>,
  options: Omit<ProgramOptions, 'args' | 'env'> = {},
): Promise<Program> {
  const daemon = startProgram({ ...options, args: ['run'], env: { ...env, LOG_LEVEL: 'info' } })
  try {
    await daemon.line(saysRunning)
  } catch (error) {
    await daemon.stop()
    throw error
  }
  return daemon
}

export const saysRunning = (line: string) => line.includes('"event":"running"')

/** A daemon in this process. */
export interface Daemon {
  readonly port: number
  /** Stops the daemon. A second call waits for the same stop. */
  stop(): Promise<void>
}

export async function startDaemon(env: Record<string, string>, clock: Clock = systemClock): Promise<Daemon> {
  const config = readConfig(env)
  const stopping = new AbortController()
  const deps = {
    ...{ config, clock },
    instanceId: randomUUID(),
    patienceMs: 30_000,
    outboxTable: loadOutboxTable(config),
    mappings: loadMappings(config.mappingsDir),
    credentials: {
      now: () => ({ ...config.service, databaseUrl: config.databaseUrl }),
      renew: () => false,
      broken: () => null,
    },
    signal: stopping.signal,
    log: createLog(config.logLevel, openStdout('json', undefined), config.tracing !== null),
    metrics: createMetrics({ version: 'test', clock }),
    version: 'test',
  }
  let app = await startApp(deps)
  const first = app
  let isFirst = true
  const running = runOneAfterAnother({
    ...deps,
    random: () => 0,
    async start() {
      if (!isFirst) app = await startApp(deps)
      isFirst = false
      return app
    },
  })
  return {
    port: first.http.port,
    async stop() {
      stopping.abort()
      await running
    },
  }
}
