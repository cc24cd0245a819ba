import { once } from 'node:events'
import { systemClock } from '../../clock.ts'
import { escapeControlInLines } from '../../plainText.ts'
import type { EnvironmentFile } from './environment.ts'

export interface CommandContext {
  env: Record<string, string | undefined>
  envFile?: EnvironmentFile | null
  stdin: NodeJS.ReadableStream
  stdout: NodeJS.WritableStream
  stderr: NodeJS.WritableStream
  signal: AbortSignal
  /** The listener gets an uncaught error right before the process exits with 1. */
  onCrash(listener: (error: unknown) => void): void
}

/** The exit codes of docs/reference/commands.md. */
export const exitCodes = { done: 0, failed: 1, usage: 2, nothing: 3, unconfirmed: 4 } as const

export function printUsageErrors(context: CommandContext, problems: readonly string[]): number {
  for (const problem of problems) context.stderr.write(`outboxd: ${escapeControlInLines(problem)}\n`)
  return exitCodes.usage
}

export function printJson(context: CommandContext, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

const sayAgainMs = 2_000

/** The returned function prints at most every two seconds. */
export function createProgressPrinter<Told extends unknown[]>(
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

export const requestWaitOptions = ({ signal, stderr }: Pick<CommandContext, 'signal' | 'stderr'>) => ({
  signal,
  onWait: () => void stderr.write('Waiting for a free request of the budget …\n'),
})
