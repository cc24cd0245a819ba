import type { CommandContext } from './context.ts'
import { escapeLines } from './table.ts'

/** The exit codes of README.md, "Commands". */
export const exit = { done: 0, failed: 1, usage: 2, nothing: 3, unconfirmed: 4 } as const

/** Says what is wrong with the way the command was given. @returns the exit code for that */
export function usageError(context: CommandContext, problems: readonly string[]): number {
  for (const problem of problems) context.stderr.write(`outboxd: ${escapeLines(problem)}\n`)
  return exit.usage
}
