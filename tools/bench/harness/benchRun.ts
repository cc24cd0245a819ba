import { type Program, startProgram } from '../../../test/support/program.ts'
import { startBenchDaemon } from './benchDaemon.ts'
import type { BenchDatabase } from './postgres.ts'

/** A run's database, and the settings of service and daemons. */
export interface BenchRunOptions {
  database: BenchDatabase
  /** Requests that the service allows in a window, and the window. Service and daemons have the same. */
  limit: number
  windowMs: number
  /** In the sandbox's notation, such as `constant:3:0.1`, in seconds. */
  processingTime: string
  daemons: number
  /** More environment variables of the daemon. */
  env?: Record<string, string>
}

/** A sandbox and its daemons on one database, all real and independent of other runs. */
export interface BenchRun extends AsyncDisposable {
  readonly database: BenchDatabase
  readonly sandboxUrl: string
  readonly daemons: readonly Program[]
}

export async function openBenchRun(options: BenchRunOptions): Promise<BenchRun> {
  const { database, limit, windowMs } = options
  await using opened = new AsyncDisposableStack()
  const sandbox = opened.use(startSandboxProcess(options))
  const line = await sandbox.line((each) => each.startsWith('{'))
  const { url: sandboxUrl } = JSON.parse(line) as { url: string }
  const daemons = await Promise.all(
    Array.from({ length: options.daemons }, () =>
      startBenchDaemon({
        databaseUrl: database.url,
        serviceUrl: sandboxUrl,
        env: {
          RATE_LIMIT_REQUESTS: String(limit),
          RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1000),
          CAPTURE_WINDOW: String(limit),
          LOG_LEVEL: 'info',
          ...options.env,
        },
      }),
    ),
  )
  for (const daemon of daemons) opened.use(daemon)
  const closing = opened.move()
  return { database, sandboxUrl, daemons, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

function startSandboxProcess({ database, limit, windowMs, processingTime }: BenchRunOptions): Program {
  return startProgram({
    args: ['sandbox', '--port', '0', '--json'],
    stderr: 'ignore',
    env: {
      SANDBOX_DATABASE_URL: database.url,
      SANDBOX_RATE_LIMIT_REQUESTS: String(limit),
      SANDBOX_RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1000),
      SANDBOX_PROCESSING_TIME: processingTime,
    },
  })
}
