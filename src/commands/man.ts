import type { Command } from 'commander'
import { variables } from '../variables.ts'
import { version } from '../version.ts'
import { manualPage } from './terminal/completion.ts'
import { type CommandContext, exit } from './terminal/context.ts'

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
