import { daemonEnvironment, startDaemonProcess } from '../../../test/support/daemon.ts'
import { type Program, sourceMain } from '../../../test/support/program.ts'

export interface BenchDaemonOptions {
  databaseUrl: string
  serviceUrl: string
  /** The daemon’s variables, on top of its plain environment. */
  env?: Record<string, string>
  flags?: readonly string[]
  /** Another main than the checkout's. */
  main?: string
}

/** Node's own way to start, as where the program is installed: tests have it faster. */
export const noCompileCache = { NODE_DISABLE_COMPILE_CACHE: '1' }

/** Starts the daemon as a user would, `node src/main.ts run`, and resolves when it runs. What it complains of is shown. */
export function startBenchDaemon(options: BenchDaemonOptions): Promise<Program> {
  const { databaseUrl, serviceUrl, env = {}, flags = [], main = sourceMain } = options
  return startDaemonProcess(daemonEnvironment(databaseUrl, serviceUrl, { ...noCompileCache, ...env }), {
    script: main,
    flags,
    stderr: 'inherit',
  })
}
