import { systemClock } from '../../clock.ts'
import { escapeLines } from '../../plainText.ts'
import type { EnvironmentFile } from './environment.ts'

/** What a command gets from `main.ts`, the only reader of process.env, signals and exit codes. */
export interface CommandContext {
  env: Record<string, string | undefined>
  /** The file that some of `env` came from, if there is one. */
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

/** The exit codes of README.md, "Commands". */
export const exit = { done: 0, failed: 1, usage: 2, nothing: 3, unconfirmed: 4 } as const

/** Says what is wrong with the way the command was given. @returns the exit code for that */
export function usageError(context: CommandContext, problems: readonly string[]): number {
  for (const problem of problems) context.stderr.write(`outboxd: ${escapeLines(problem)}\n`)
  return exit.usage
}

/** Prints a value as `--json` has it. */
export function printJson(context: CommandContext, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

const sayAgainMs = 2_000

/** Says every two seconds how far a command is. @param message how far, of what the work tells */
export function createProgress<Told extends unknown[]>(
  { stderr }: Pick<CommandContext, 'stderr'>,
  message: (...told: Told) => string,
): (...told: Told) => void {
  let sinceMs = systemClock.stopwatch()
  return (...told) => {
    if (sinceMs() < sayAgainMs) return
    stderr.write(`${message(...told)}\n`)
    sinceMs = systemClock.stopwatch()
  }
}

/** Wraps a stream, and tells a listener what is written through the wrapper. */
export function tapStream<S extends NodeJS.WritableStream>(stream: S, onText: (text: string) => void): S {
  function write(...args: Parameters<S['write']>): boolean {
    onText(String(args[0]))
    return Reflect.apply(stream.write, stream, args)
  }
  return new Proxy(stream, {
    get(target, name) {
      if (name === 'write') return write
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** How a command asks the service with slots of the budget: it says that it waits for one, and stops with the command. */
export const askingAloud = (
  { signal, stderr }: Pick<CommandContext, 'signal' | 'stderr'>,
  awaited: 'a free slot' | 'free slots' = 'a free slot',
) => ({
  signal,
  onWait: () => void stderr.write(`Waiting for ${awaited} of the budget, to ask the service …\n`),
})
