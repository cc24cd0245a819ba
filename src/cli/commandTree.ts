import type { Argument, Command, Option } from 'commander'

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
