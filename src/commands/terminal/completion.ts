import type { Argument, Command, Option } from 'commander'
import type { Variable } from '../../readVariables.ts'

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** A script for the shell that completes commands and options; where a value is wanted, names of files. Pure. */
export function completionScript(shell: Shell, tree: CommandTree): string {
  return `${{ bash, zsh, fish }[shell](tree).join('\n')}\n`
}

const flagsOf = (options: readonly OptionEntry[]) =>
  options.flatMap(({ long, short }) => [long, ...(short ? [short] : [])])

/** An apostrophe ends the quotation, is quoted itself, and begins the next. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

function bash({ options, commands }: CommandTree): string[] {
  const wantValue = [{ name: '', options }, ...commands].flatMap((command) =>
    command.options.flatMap((option) =>
      option.value === null ? [] : flagsOf([option]).map((flag) => quoted(`${command.name} ${flag}`)),
    ),
  )
  const branches = commands.map(
    (command) => `    ${command.name}) words=${quoted([...command.choices, ...flagsOf(command.options)].join(' '))} ;;`,
  )
  return [
    '_outboxd() {',
    '  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= i',
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    '    case ${COMP_WORDS[i]} in',
    '      --env-file) ((i++)) ;;',
    '      -*) ;;',
    '      *) command=${COMP_WORDS[i]}; break ;;',
    '    esac',
    '  done',
    '  COMPREPLY=()',
    `  case "$command $prev" in ${wantValue.join('|')}) return ;; esac`,
    '  case $command in',
    `    '') words=${quoted([...commands.map(({ name }) => name), ...flagsOf(options)].join(' '))} ;;`,
    ...branches,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
    '}',
    'complete -o default -F _outboxd outboxd',
  ]
}

function zsh({ options, commands }: CommandTree): string[] {
  const specification = ({ long, short, description, value }: OptionEntry) => {
    const about = `[${description.replace(/[[\]\\]/g, '\\$&')}]`
    const wanted = value === null ? '' : `:${value.replaceAll(':', ' ')}:_files`
    return [long, ...(short ? [short] : [])].map((flag) => `    ${quoted(`${flag}${about}${wanted}`)} \\`)
  }
  const named = commands.map(
    ({ name, description }) => `    ${quoted(`${name}:${description.replaceAll(':', '\\:')}`)}`,
  )
  const branches = commands.flatMap((command) => [
    `    ${command.name}) _arguments \\`,
    ...command.options.flatMap(specification),
    `    ${quoted(command.choices.length > 0 ? `1:value:(${command.choices.join(' ')})` : '*:file:_files')} ;;`,
  ])
  return [
    '#compdef outboxd',
    '_outboxd() {',
    '  local -a commands',
    '  local state line',
    '  commands=(',
    ...named,
    '  )',
    '  _arguments -C \\',
    ...options.flatMap(specification),
    "    '1:command:->command' '*::argument:->argument'",
    '  case $state in',
    '  command) _describe command commands ;;',
    '  argument) case $words[1] in',
    ...branches,
    '    esac ;;',
    '  esac',
    '}',
    'if [ "$funcstack[1]" = _outboxd ]; then _outboxd "$@"; else compdef _outboxd outboxd; fi',
  ]
}

function fish({ options, commands }: CommandTree): string[] {
  const option = (condition: string) => (entry: OptionEntry) => {
    const flags = [`-l ${entry.long.slice(2)}`, ...(entry.short ? [`-s ${entry.short.slice(1)}`] : [])].join(' ')
    return `complete -c outboxd -n ${quoted(condition)} ${flags} ${entry.value === null ? '' : '-r '}-d ${quoted(entry.description)}`
  }
  return [
    ...options.map(option('__fish_use_subcommand')),
    ...commands.flatMap(({ name, description, options: own, choices }) => {
      const within = `__fish_seen_subcommand_from ${name}`
      return [
        `complete -c outboxd -n __fish_use_subcommand -f -a ${name} -d ${quoted(description)}`,
        ...own.map(option(within)),
        ...(choices.length > 0 ? [`complete -c outboxd -n ${quoted(within)} -f -a ${quoted(choices.join(' '))}`] : []),
      ]
    }),
  ]
}

/** What `--help`, completion and the manual page are all made from. */
export interface CommandTree {
  options: readonly OptionEntry[]
  commands: readonly CommandEntry[]
}

export interface CommandEntry {
  name: string
  description: string
  options: readonly OptionEntry[]
  /** The values that an argument may have, where they are few; otherwise it may be a file. */
  choices: readonly string[]
}

export interface OptionEntry {
  /** `--limit`; without it for `-h` alone. */
  long: string
  short: string | null
  description: string
  /** What the value is called; null where the option takes none. */
  value: string | null
  choices: readonly string[]
}

/** Reads the definitions of all commands. */
export function commandTree(program: Command): CommandTree {
  return {
    options: optionsOf(program),
    commands: program.commands.map((command) => ({
      name: command.name(),
      description: command.description(),
      options: optionsOf(command),
      choices: command.registeredArguments.flatMap(({ argChoices }: Argument) => argChoices ?? []),
    })),
  }
}

/** As the help has them: with `--help`, and `--version` where there is one. */
function optionsOf(command: Command): OptionEntry[] {
  return command.createHelp().visibleOptions(command).map(entryOf)
}

function entryOf({ long, short, flags, description, argChoices }: Option): OptionEntry {
  return {
    long: long ?? '',
    short: short ?? null,
    description,
    value: /<(.+)>|\[(.+)\]/.exec(flags)?.slice(1).find(Boolean) ?? null,
    choices: argChoices ?? [],
  }
}

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
