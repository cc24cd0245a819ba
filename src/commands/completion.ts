import type { Command, Option } from 'commander'
import { type CommandModule, OptionWithValues } from './terminal/command.ts'
import { type CommandContext, exitCodes } from './terminal/context.ts'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

export const command: CommandModule = {
  action: completion,
  onlyLooks: true,
  withoutMappings: true,
  description: 'print a script that completes commands and options in your shell',
  arguments: [['<shell>', 'your shell', shells]],
  help: `Examples:
  outboxd completion bash > /etc/bash_completion.d/outboxd
  outboxd completion zsh > /usr/local/share/zsh/site-functions/_outboxd
  outboxd completion fish > ~/.config/fish/completions/outboxd.fish
  source <(outboxd completion bash)      for this shell only`,
}

async function completion({ stdout }: CommandContext, shell: Shell, _: object, own: Command): Promise<number> {
  const program = own.parent ?? own
  stdout.write(`${{ bash, zsh, fish }[shell](program, program.commands).join('\n')}\n`)
  return exitCodes.done
}

const optionsOf = (command: Command) => command.createHelp().visibleOptions(command)
const flagsOf = ({ long, short }: Option) => [long, short].filter((flag) => flag != null)
const takesValue = ({ required, optional }: Option) => required || optional
const valuesOf = (option: Option) => (option instanceof OptionWithValues ? option.values : [])
const choicesOf = (command: Command) => command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])

/** At an apostrophe, ends the quote, escapes the apostrophe, and quotes on. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

function bash(program: Command, commands: readonly Command[]): string[] {
  const valued = [program, ...commands].flatMap((command) => {
    const name = command === program ? '' : command.name()
    return optionsOf(command)
      .filter(takesValue)
      .flatMap((option) => flagsOf(option).map((flag) => ({ at: quoted(`${name} ${flag}`), words: valuesOf(option) })))
  })
  const known = valued.filter(({ words }) => words.length > 0)
  const unknown = valued.filter(({ words }) => words.length === 0)
  const wordsOf = (command: Command, own: readonly string[]) =>
    quoted([...own, ...optionsOf(command).flatMap(flagsOf)].join(' '))
  const names = commands.map((command) => command.name())
  return [
    '_outboxd_words() {',
    '  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= i',
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    '    case ${COMP_WORDS[i]} in',
    '      --env-file) ((i++)) ;;',
    '      -*) ;;',
    '      *) command=${COMP_WORDS[i]}; break ;;',
    '    esac',
    '  done',
    '  COMPREPLY=()',
    '  case "$command $prev" in',
    `    ${unknown.map(({ at }) => at).join('|')}) return ;;`,
    ...known.map(({ at, words }) => `    ${at}) words=${quoted(words.join(' '))} ;;`),
    '  esac',
    '  if [ -n "$words" ]; then', // a value, also after a comma
    '    COMPREPLY=($(compgen -P "${cur%"${cur##*,}"}" -W "$words" -- "${cur##*,}"))',
    '    return',
    '  fi',
    '  case $command in',
    `    '') words=${wordsOf(program, names)} ;;`,
    ...commands.map((command) => `    ${command.name()}) words=${wordsOf(command, choicesOf(command))} ;;`),
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
    '}',
    'complete -o default -F _outboxd_words outboxd',
  ]
}

/** Lets zsh run the script of bash. Loaded from `fpath`, the script must also answer the first completion. */
const zsh = (program: Command, commands: readonly Command[]): string[] => [
  '#compdef outboxd',
  'autoload -U +X bashcompinit && bashcompinit',
  ...bash(program, commands),
  'if [ "$funcstack[1]" = _outboxd ]; then _bash_complete -o default -F _outboxd_words; fi',
]

function fish(program: Command, commands: readonly Command[]): string[] {
  const complete = (condition: string, words: string) => `complete -c outboxd -n ${quoted(condition)} ${words}`
  const argumentOf = (each: Option) => {
    const values = valuesOf(each).join(' ')
    if (values !== '') return `-x -a ${quoted(values)} `
    return takesValue(each) ? '-r ' : ''
  }
  const option = (condition: string) => (each: Option) => {
    const flags = [`-l ${each.long?.slice(2)}`, ...(each.short ? [`-s ${each.short.slice(1)}`] : [])].join(' ')
    return complete(condition, `${flags} ${argumentOf(each)}-d ${quoted(each.description)}`)
  }
  return [
    ...optionsOf(program).map(option('__fish_use_subcommand')),
    ...commands.flatMap((each) => {
      const within = `__fish_seen_subcommand_from ${each.name()}`
      const choices = choicesOf(each).join(' ')
      return [
        complete('__fish_use_subcommand', `-f -a ${each.name()} -d ${quoted(each.description())}`),
        ...optionsOf(each).map(option(within)),
        ...(choices === '' ? [] : [complete(within, `-f -a ${quoted(choices)}`)]),
      ]
    }),
  ]
}
