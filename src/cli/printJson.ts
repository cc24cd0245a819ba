import type { CommandContext } from './context.ts'

/** Prints a value as `--json` has it. */
export function printJson(context: CommandContext, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}
