import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { exit } from '../cli/exitCodes.ts'
import { manualPage } from '../cli/manualPage.ts'
import { variables } from '../variables.ts'
import { version } from '../version.ts'

export function describeMan(command: Command): Command {
  return command.description('print the manual page, with all commands and variables').addHelpText(
    'after',
    `
Examples:
  outboxd man | man -l -
  outboxd man > /usr/local/share/man/man1/outboxd.1      then: man outboxd`,
  )
}

/** Prints the page, made from what `--help` is made from. */
export async function man(context: CommandContext, program: Command): Promise<number> {
  context.stdout.write(manualPage(program, version, variables))
  return exit.done
}
