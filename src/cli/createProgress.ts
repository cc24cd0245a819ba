import { systemClock } from '../clock.ts'
import type { CommandContext } from './context.ts'

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
