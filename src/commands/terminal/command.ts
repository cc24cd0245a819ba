import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import type { CommandContext } from './context.ts'

export type OptionRow = readonly [
  flags: string,
  help: string,
  /** `values` are offered by completion. A list of values with commas is completed, too. */
  how?: {
    read?: (text: string, before?: never) => unknown
    default?: string | number
    required?: true
    values?: readonly string[]
  },
]

/** The name is `<required>`, `[optional]` or `[many...]`. */
export type ArgumentRow = readonly [name: string, help: string, choices?: readonly string[]]

export interface CommandModule extends Help {
  action(context: CommandContext, ...given: never[]): Promise<number>
}

interface Help {
  description: string
  arguments?: readonly ArgumentRow[]
  options?: readonly OptionRow[]
  help?: string
  /** The command changes nothing: stdout may close early (`| head`), and a read-only role is enough. */
  onlyLooks?: true
  /** The command reads no mapping files except those that it writes. */
  withoutMappings?: true
}

interface Definition<Arguments extends readonly ArgumentRow[], Options extends readonly OptionRow[]> extends Help {
  arguments?: Arguments
  options?: Options
  action(context: CommandContext, ...given: [...ArgumentValues<Arguments>, OptionValues<Options>]): Promise<number>
}

export const defineCommand = <
  const Arguments extends readonly ArgumentRow[] = [],
  const Options extends readonly OptionRow[] = [],
>(
  command: Definition<Arguments, Options>,
) => command

export type OptionsOf<Command extends { options?: readonly OptionRow[] }> = OptionValues<
  NonNullable<Command['options']>
>

type ArgumentValues<Rows extends readonly ArgumentRow[]> = { [At in keyof Rows]: ArgumentValue<Rows[At][0]> }

type ArgumentValue<Name> = Name extends `${string}...]`
  ? readonly string[]
  : Name extends `<${string}`
    ? string
    : string | undefined

type OptionValues<Rows extends readonly OptionRow[]> = {
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

export class OptionWithValues extends Option {
  readonly values: readonly string[]
  constructor(flags: string, help: string, values: readonly string[] = []) {
    super(flags, help)
    this.values = values
  }
}

export function configureCommand(command: Command, module: CommandModule): Command {
  command.description(module.description)
  for (const [name, help, choices] of module.arguments ?? []) {
    const argument = new Argument(name, help)
    command.addArgument(choices === undefined ? argument : argument.choices(choices))
  }
  for (const [flags, help, how = {}] of module.options ?? []) {
    const option = new OptionWithValues(flags, help, how.values)
      .default(how.default)
      .makeOptionMandatory(how.required ?? false)
    command.addOption(how.read === undefined ? option : option.argParser(how.read as (text: string) => unknown))
  }
  return module.help === undefined ? command : command.addHelpText('after', `\n${module.help}`)
}

/** The parser throws an InvalidArgumentError, which commander prints. */
export const wholeNumberParser =
  (min: number, max: number) =>
  (text: string): number => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (number >= min && number <= max) return number
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  }
