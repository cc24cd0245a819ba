import { parseArgs } from 'node:util'

interface BenchOption {
  /** A switch has the default `false`; every other option is text. */
  default: string | false
  help: string
}

type Values<Options extends Record<string, BenchOption>> = {
  [Name in keyof Options]: Options[Name]['default'] extends false ? boolean : string
}

/**
 * Returns the options of a benchmark. `--help` prints them with their defaults and ends the process with 0. An unknown
 * option prints the same and ends it with 2.
 */
export function readOptions<const Options extends Record<string, BenchOption>>(
  about: string,
  options: Options,
): Values<Options> {
  const usage = `${about}\n\n${Object.entries(options).map(describeOption).join('')}  --help\n`
  const types = Object.entries(options).map(([name, { default: value }]) => [
    name,
    value === false ? { type: 'boolean', default: false } : { type: 'string', default: value },
  ])
  try {
    const { values } = parseArgs({ options: { ...Object.fromEntries(types), help: { type: 'boolean' } } })
    if (!('help' in values)) return values as unknown as Values<Options>
    process.stdout.write(usage)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    process.exit(2)
  }
  process.exit(0)
}

function describeOption([name, { default: value, help }]: [string, BenchOption]): string {
  const form = value === false ? `--${name}` : `--${name} VALUE`
  return `  ${form.padEnd(22)} ${help}${value ? ` (default: ${value})` : ''}\n`
}
