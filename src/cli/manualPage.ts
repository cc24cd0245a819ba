import type { Command } from 'commander'
import type { Variable } from '../readVariables.ts'

/** The manual page, in roff for `man`: the help of every command, and the variables. */
export function manualPage(program: Command, version: string, variables: Readonly<Record<string, Variable>>): string {
  return [
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
    ...verbatim(afterColon(helpOf(program))),
    '',
  ].join('\n')
}

/** As `outboxd COMMAND --help` prints it. */
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

const afterColon = (help: string) => help.slice(help.lastIndexOf('Exit codes: ') + 'Exit codes: '.length)

const verbatim = (text: string) => ['.nf', ...text.split('\n').map(escaped), '.fi']

/** A backslash is a command, and so is a line that begins with a dot or an apostrophe; beyond ASCII, roff wants numbers. */
function escaped(line: string): string {
  return line
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/, '\\&')
    .replace(/\P{ASCII}/gu, (character) => `\\[u${hexadecimal(character)}]`)
}

const hexadecimal = (character: string) => character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
