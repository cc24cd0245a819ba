import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { effectiveConfig } from '../cli/effectiveConfig.ts'
import { exit } from '../cli/exitCodes.ts'
import { printJson } from '../cli/printJson.ts'
import { renderTable, terminalOf } from '../cli/table.ts'
import { inUnit, readConfig } from '../config.ts'
import { ConfigInvalid, type Sharing, type Variable } from '../readVariables.ts'
import { variables } from '../variables.ts'

export interface ConfigOptions {
  effective?: boolean
  json?: boolean
}

/** A variable as people read it. */
interface Row {
  name: string
  /** In the variable's own unit; "required" or "none" where there is no default. */
  default: string
  /** Whether instances may differ in it. */
  instances: Sharing
  about: string
  /** The variable that may name a file with the value instead; null where there is none. */
  file: string | null
}

export function describeConfig(command: Command): Command {
  return command
    .description('print every environment variable, its default and what it is for')
    .option('--effective', 'the values in force here, and where each comes from; of a secret whether it is set')
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
--effective reads what a daemon started here would read, and leaves with 2 where it could not start with that. A daemon that
runs has what was there when it started.

Examples:
  outboxd config --effective
  outboxd --env-file /etc/outboxd/env config --effective --json`,
    )
}

/** Prints the table of the README, from the same list that the daemon reads its environment by; or what holds here. */
export async function config(context: CommandContext, options: ConfigOptions): Promise<number> {
  if (options.effective) return printEffective(context, options)
  const rows = Object.entries(variables).map(([name, variable]) => describe(name, variable))
  if (options.json) printJson(context, rows)
  else context.stdout.write(markdown(rows))
  return exit.done
}

/** @returns 2 where the configuration cannot be used */
function printEffective(context: CommandContext, { json }: ConfigOptions): number {
  const rows = effectiveConfig(context)
  if (json) printJson(context, rows)
  else {
    const cells = rows.map(({ name, value, from, problem }) => [
      name,
      value ?? (problem && from ? 'INVALID' : 'not set'),
      from ?? '',
    ])
    context.stdout.write(renderTable(['VARIABLE', 'VALUE', 'FROM'], cells, terminalOf(context.stdout)))
  }
  const mistakes = mistakesIn(context)
  for (const mistake of mistakes) context.stderr.write(`outboxd: ${mistake}\n`)
  return mistakes.length > 0 ? exit.usage : exit.done
}

/** Also those that no variable has alone. */
function mistakesIn({ env }: CommandContext): readonly string[] {
  try {
    readConfig(env)
    return []
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error
    return error.problems
  }
}

function describe(name: string, { instances, schema, about, shownDefault, secret }: Variable): Row {
  const parsed = schema.safeParse(undefined)
  return {
    name,
    default: parsed.success
      ? (shownDefault ?? (parsed.data === undefined ? 'none' : inUnit(name, parsed.data)))
      : 'required',
    instances,
    about,
    file: secret ? `${name}_FILE` : null,
  }
}

/** What the table says of variables in which instances should not differ. */
const alike: Readonly<Record<string, string>> = {
  'same: reported': 'the same; `status` says who differs',
  'same: refused': 'the same, or the daemon does not start',
} satisfies Partial<Record<Sharing, string>>

function markdown(rows: readonly Row[]): string {
  const lines = rows.map(({ name, default: shown, instances, about, file }) => {
    const what = file ? `${about}; or in the file that \`${file}\` names` : about
    return `| \`${name}\` | ${shown} | ${alike[instances] ?? 'own'} | ${what.replaceAll('|', '\\|')} |`
  })
  return ['| variable | default | on all instances | |', '|---|---|---|---|', ...lines, ''].join('\n')
}
