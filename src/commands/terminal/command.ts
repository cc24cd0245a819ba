import type { Command } from 'commander'
import type { CommandContext } from './context.ts'

/** One command of the program. A module exports it as `command`, and main.ts lists the module under the command's name. */
export interface CommandModule {
  /** Adds the description, arguments, options and examples: `--help`, completion and the manual page are made from them. */
  describe(command: Command): Command
  /** Runs the command with its arguments and its options. @returns the exit code */
  action(context: CommandContext, ...given: never[]): Promise<number>
  /** True if it only reads. A reader who leaves, as in `| head`, ends it; a role made with `--read-only` may give it. */
  onlyLooks?: true
  /** True if it reads no mapping files, or only those that it is about to write. */
  withoutMappings?: true
}
