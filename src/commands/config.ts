import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { variables } from '../config.ts'
import type { Variable } from '../readVariables.ts'

export interface ConfigOptions {
  json?: boolean
}

/** A variable as people read it. */
interface Row {
  name: string
  /** In the variable's own unit; "required" or "none" where there is no default. */
  default: string
  about: string
  /** The variable that may name a file with the value instead; null where there is none. */
  file: string | null
}

export function describeConfig(command: Command): Command {
  return command
    .description('print every environment variable, its default and what it is for')
    .option('--json', 'as JSON')
}

/** Prints the table of the README, from the same list that the daemon reads its environment by. */
export async function config(context: CommandContext, options: ConfigOptions): Promise<number> {
  const rows = Object.entries(variables).map(([name, variable]) => describe(name, variable))
  context.stdout.write(options.json ? `${JSON.stringify(rows, null, 2)}\n` : markdown(rows))
  return 0
}

function describe(name: string, { schema, about, shownDefault, secret }: Variable): Row {
  const parsed = schema.safeParse(undefined)
  return {
    name,
    default: parsed.success ? (shownDefault ?? inUnit(name, parsed.data)) : 'required',
    about,
    file: secret ? `${name}_FILE` : null,
  }
}

/** Durations are kept in milliseconds; the variable says seconds. */
function inUnit(name: string, value: unknown): string {
  if (value === undefined) return 'none'
  return String(name.endsWith('_SECONDS') ? Number(value) / 1000 : value)
}

function markdown(rows: readonly Row[]): string {
  const lines = rows.map(({ name, default: shown, about, file }) => {
    const what = file ? `${about}; or in the file that \`${file}\` names` : about
    return `| \`${name}\` | ${shown} | ${what.replaceAll('|', '\\|')} |`
  })
  return ['| variable | default | |', '|---|---|---|', ...lines, ''].join('\n')
}
