import { filterOptions } from '../../src/commands/selection.ts'
import type { ArgumentRow, CommandModule, OptionRow } from '../../src/commands/terminal/command.ts'

/** An option that this many commands explain with the same words has one row for all of them. */
const sharedByMin = 3

/** All flags of `filterOptions`, except that each command limits something different. */
const filterFlags = new Set<string>(filterOptions({ allowedStates: [], defaultStates: [] }, '').map(([flags]) => flags))
filterFlags.delete('--limit <number>')

interface OptionText {
  flags: string
  about: string
  /** In parentheses, or empty. */
  defaultText: string
}

interface DescribedCommand {
  name: string
  module: CommandModule
  options: readonly OptionText[]
}

/** The shared options by their meaning, with the default if all commands have the same. */
type SharedOptions = ReadonlyMap<string, OptionText>

/**
 * One table per command, headed by what it does, below the tables of options that several commands share.
 *
 * @param names in the order of the page
 */
export async function commandTables(names: readonly string[]): Promise<string> {
  const commands = await Promise.all(names.map(readCommand))
  const shared = findShared(commands.flatMap(({ options }) => options))
  const head = ['option', 'what it does'] as const
  const tables = [
    `## Filters\nA record must match each filter that you give.\n\n${table([...shared.values()].filter(isFilter), head)}`,
    `## Options of several commands\n${table(
      [...shared.values()].filter((option) => !isFilter(option)),
      head,
    )}`,
    ...commands.map((command) => commandSection(command, shared)),
  ].join('\n\n')
  return withCode(tables, names)
}

const isFilter = ({ flags }: OptionText) => filterFlags.has(flags)

async function readCommand(name: string): Promise<DescribedCommand> {
  const { command: module }: { command: CommandModule } = await import(`../../src/commands/${name}.ts`)
  return { name, module, options: (module.options ?? []).map(readOption) }
}

/** Commander prints defaults that are values. Other defaults are in the help text. */
function readOption([flags, help, how = {}]: OptionRow): OptionText {
  const [, about = help, defaultInHelp = ''] = /^(.*?)( \(default: .*\))$/.exec(help) ?? []
  const defaultText = how.default === undefined ? defaultInHelp : ` (default: ${how.default})`
  return { flags, about, defaultText: how.required ? ' (required)' : defaultText }
}

function findShared(options: readonly OptionText[]): SharedOptions {
  const shared = [...Map.groupBy(options, meaningOf)].flatMap(([meaning, [first, ...others]]) => {
    if (first === undefined || others.length + 1 < sharedByMin) return []
    const isDefaultShared = others.every(({ defaultText }) => defaultText === first.defaultText)
    return [[meaning, { ...first, defaultText: isDefaultShared ? first.defaultText : '' }] as const]
  })
  return new Map(shared)
}

function commandSection({ name, module, options }: DescribedCommand, shared: SharedOptions): string {
  const own = options.filter((option) => !shared.has(meaningOf(option)))
  const also = options.flatMap((option) => {
    const same = shared.get(meaningOf(option))
    if (same === undefined) return []
    const ownDefault = same.defaultText === '' ? option.defaultText : ''
    return isFilter(option) && ownDefault === '' ? [] : [`${option.flags.replace(/ .*/, '')}${ownDefault}`]
  })
  const usage = ['outboxd', name, ...(module.arguments ?? []).map(argumentName)].join(' ')
  const about = [
    `${capitalized(module.description)}.`,
    options.some(isFilterOf(shared)) ? 'Takes the [filters](#filters).' : '',
    also.length === 0 ? '' : `Also ${also.join(', ')}.`,
  ]
  const lead = about.filter(Boolean).join(' ')
  return `## ${name}\n${own.length === 0 ? `\`${usage}\`. ${lead}` : table(own, [`\`${inCell(usage)}\``, lead])}`
}

const isFilterOf = (shared: SharedOptions) => (option: OptionText) => isFilter(option) && shared.has(meaningOf(option))

const meaningOf = ({ flags, about }: OptionText) => `${flags} ${about}`

const argumentName = ([name, , choices]: ArgumentRow) => (choices === undefined ? name : choices.join('|'))

function table(options: readonly OptionText[], [left, right]: readonly [string, string]): string {
  const rows = options.map(
    ({ flags, about, defaultText }) => `| \`${inCell(flags)}\` | ${inCell(about + defaultText)} |`,
  )
  return [`| ${left} | ${right} |`, '|---|---|', ...rows].join('\n')
}

const inCell = (text: string) => text.replaceAll('|', '\\|')

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

/** Marks commands and options as code, unless they are. */
function withCode(text: string, names: readonly string[]): string {
  const command = `\\boutboxd (?:${names.join('|')})\\b(?: --[a-z-]+)*`
  return text.replace(new RegExp(`\`[^\`]*\`|${command}|(?<![\\w-])--[a-z][a-z-]*`, 'g'), (code) =>
    code.startsWith('`') ? code : `\`${code}\``,
  )
}
