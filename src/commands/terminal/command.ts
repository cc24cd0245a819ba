import { Argument, type Command, Option } from 'commander'
import type { CommandContext } from './context.ts'

/** An option as `--help` lists it: its flags, what it is for, and how its text is read. */
export type OptionRow = readonly [
  flags: string,
  help: string,
  how?: { read?: (text: string, before?: never) => unknown; default?: string | number; required?: true },
]

/** An argument: `<wanted>`, `[optional]` or `[many...]`, what it is, and the words that it may be, if they are few. */
export type ArgumentRow = readonly [name: string, help: string, choices?: readonly string[]]

/** One command of the program. A module exports it as `command`, and main.ts lists the module under the command's name. */
export interface CommandModule {
  description: string
  arguments?: readonly ArgumentRow[]
  options?: readonly OptionRow[]
  /** What `--help` says after the options. */
  help?: string
  /** Runs the command with its arguments and its options. @returns the exit code */
  action(context: CommandContext, ...given: never[]): Promise<number>
  /** True if it only reads. A reader who leaves, as in `| head`, ends it; a role made with `--read-only` may give it. */
  onlyLooks?: true
  /** True if it reads no mapping files, or only those that it is about to write. */
  withoutMappings?: true
}

/** The options that rows describe, as an action gets them: `--dry-run` is `dryRun`, and true or not there. */
export type OptionsOf<Rows extends readonly OptionRow[]> = {
  [Row in Exclude<Rows[number], WithDefault> as NameOf<Row[0]>]?: ValueOf<Row> | undefined
} & {
  [Row in Extract<Rows[number], WithDefault> as NameOf<Row[0]>]: ValueOf<Row>
}

type WithDefault = readonly [string, string, { default: string | number }]

type NameOf<Flags> = Flags extends `--no-${infer Name}`
  ? CamelCase<Name>
  : Flags extends `--${infer Name} <${string}>`
    ? CamelCase<Name>
    : Flags extends `--${infer Name}`
      ? CamelCase<Name>
      : never

type CamelCase<Words> = Words extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Words extends string
    ? Words
    : never

type ValueOf<Row extends OptionRow> = Row extends readonly [
  string,
  string,
  { read: (text: string, before?: never) => infer Value },
]
  ? Value
  : Row[0] extends `${string}>`
    ? string
    : boolean

/** Adds what a module says of its command: `--help`, completion and the manual page are made from it. */
export function describeCommand(command: Command, module: CommandModule): Command {
  command.description(module.description)
  for (const [name, help, choices] of module.arguments ?? []) {
    const argument = new Argument(name, help)
    command.addArgument(choices === undefined ? argument : argument.choices(choices))
  }
  for (const [flags, help, how = {}] of module.options ?? []) {
    const option = new Option(flags, help).default(how.default).makeOptionMandatory(how.required ?? false)
    command.addOption(how.read === undefined ? option : option.argParser(how.read as (text: string) => unknown))
  }
  return module.help === undefined ? command : command.addHelpText('after', `\n${module.help}`)
}
