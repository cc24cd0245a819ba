import type { CommandTree, OptionEntry } from './commandTree.ts'

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
