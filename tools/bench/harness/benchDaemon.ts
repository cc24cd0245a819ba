import { daemonEnvironment, startDaemonProcess } from '../../../test/support/daemon.ts'
import { type Program, sourceMain } from '../../../test/support/program.ts'

export interface BenchDaemonOptions {
  databaseUrl: string
  serviceUrl: string
  /** More environment variables of the daemon. */
  env?: Record<string, string>
  flags?: readonly string[]
  /** A different main.js or main.ts than the checkout's. */
  main?: string
}

/** Starts Node as an installed program does, without the compile cache that makes tests faster. */
export const noCompileCache = { NODE_DISABLE_COMPILE_CACHE: '1' }

/** Starts the daemon by `node src/main.ts run` and resolves when it runs. Prints its warnings and errors. */
export function startBenchDaemon(options: BenchDaemonOptions): Promise<Program> {
  const { databaseUrl, serviceUrl, env = {}, flags = [], main = sourceMain } = options
  return startDaemonProcess(daemonEnvironment(databaseUrl, serviceUrl, { ...noCompileCache, ...env }), {
    script: main,
    flags,
    stderr: 'inherit',
  })
}
