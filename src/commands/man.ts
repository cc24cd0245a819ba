import type { Command } from 'commander'
import { variables } from '../variables.ts'
import { version } from '../version.ts'
import type { CommandModule } from './terminal/command.ts'
import { type CommandContext, exitCodes } from './terminal/context.ts'

export const command: CommandModule = {
  action: man,
  onlyLooks: true,
  withoutMappings: true,
  description: 'print the manual page, with all commands and variables',
  help: `Examples:
  outboxd man | man -l -
  outboxd man > /usr/local/share/man/man1/outboxd.1      then: man outboxd`,
}

async function man({ stdout }: CommandContext, _: object, own: Command): Promise<number> {
  const program = own.parent ?? own
  const codesText = /Exit codes: (.*)$/s.exec(helpOf(program))?.[1] ?? ''
  const lines = [
    `.TH OUTBOXD 1 "" "outboxd ${version}"`,
    '.SH NAME',
    `outboxd \\- ${escaped(program.description().replace(/\.$/, ''))}`,
    '.SH SYNOPSIS',
    '.B outboxd',
    '[\\-\\-env\\-file FILE] COMMAND [OPTIONS]',
    '.SH COMMANDS',
    ...program.commands.flatMap((command) => [`.SS ${command.name()}`, ...verbatim(helpOf(command))]),
    '.SH ENVIRONMENT',
    ...Object.entries(variables).flatMap(([name, { about }]) => ['.TP', `.B ${escaped(name)}`, escaped(about)]),
    '.SH EXIT STATUS',
    ...verbatim(codesText),
    '',
  ]
  stdout.write(lines.join('\n'))
  return exitCodes.done
}

function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({
    writeOut: (part) => {
      text += part
    },
    getOutHelpWidth: () => 78,
    getOutHasColors: () => false,
  })
  command.outputHelp()
  return text.trimEnd()
}

const verbatim = (text: string) => ['.nf', ...text.split('\n').map(escaped), '.fi']

/** In roff, a backslash anywhere and a dot or apostrophe at a line's start begin a command. */
const escaped = (line: string): string =>
  line
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/, '\\&')
