import { startProgram } from '../../../test/support/program.ts'
import { startBenchDaemon } from './benchDaemon.ts'
import type { BenchDatabase } from './postgres.ts'

export interface BenchServiceOptions {
  database: BenchDatabase
  /** Requests that the service allows in a window, and the window. Service and daemon have the same. */
  limit: number
  windowMs: number
  /** In the sandbox's notation, such as `constant:3:0.1`, in seconds. */
  processingTime: string
  /** More environment variables of the sandbox. */
  sandboxEnv?: Record<string, string>
}

/** A run's database, and the settings of service and daemon. */
export interface BenchRunOptions extends BenchServiceOptions {
  /** More environment variables of the daemon. */
  env?: Record<string, string>
}

/** Starts a sandbox and its daemon on one database, independent of other runs. They end when the result is disposed. */
export async function openBenchRun(options: BenchRunOptions): Promise<AsyncDisposable> {
  const { database, limit, windowMs } = options
  await using opened = new AsyncDisposableStack()
  const sandbox = opened.use(await startBenchSandbox(options))
  const daemon = await startBenchDaemon({
    databaseUrl: database.url,
    serviceUrl: sandbox.url,
    env: {
      RATE_LIMIT_REQUESTS: String(limit),
      RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1000),
      CAPTURE_WINDOW: String(limit),
      LOG_LEVEL: 'info',
      ...options.env,
    },
  })
  opened.use(daemon)
  return opened.move()
}

/** Starts a sandbox in the run's database. It ends when the result is disposed. */
export async function startBenchSandbox(options: BenchServiceOptions): Promise<AsyncDisposable & { url: string }> {
  const { database, limit, windowMs, processingTime, sandboxEnv } = options
  const sandbox = startProgram({
    args: ['sandbox', '--port', '0', '--json'],
    stderr: 'ignore',
    env: {
      SANDBOX_DATABASE_URL: database.url,
      SANDBOX_RATE_LIMIT_REQUESTS: String(limit),
      SANDBOX_RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1000),
      SANDBOX_PROCESSING_TIME: processingTime,
      ...sandboxEnv,
    },
  })
  const line = await sandbox.line((each) => each.startsWith('{'))
  const { url } = JSON.parse(line) as { url: string }
  return { url, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() }
}
