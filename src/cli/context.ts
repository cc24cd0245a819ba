import type { EnvironmentFile } from './environmentFile.ts'

/** What a command gets from `main.ts`, the only reader of process.env, signals and exit codes. */
export interface CommandContext {
  env: Record<string, string | undefined>
  /** The file that some of `env` came from, where there is one. */
  envFile?: EnvironmentFile | null
  /** Standard input, for commands that read from it. */
  stdin: NodeJS.ReadableStream
  /** Data: tables and JSON. */
  stdout: NodeJS.WritableStream
  /** Words: progress, warnings, errors. */
  stderr: NodeJS.WritableStream
  /** Aborted on SIGINT or SIGTERM. */
  signal: AbortSignal
  /** Called on SIGHUP. */
  onReload(listener: () => void): void
  /** Called with an error that nothing caught, right before the process leaves with 1. */
  onCrash(listener: (error: unknown) => void): void
}
