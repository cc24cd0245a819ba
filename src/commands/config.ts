import { resolve } from 'node:path'
import { formatInVariableUnit, readConfig, readMappingsDirOrExamples } from '../config.ts'
import {
  ConfigInvalid,
  createVariableReader,
  type Environment,
  type ValuesAcrossInstances,
  type Variable,
} from '../createVariableReader.ts'
import { renderTable, terminalOf } from '../plainText.ts'
import { variables } from '../variables.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson } from './terminal/context.ts'

interface Row {
  name: string
  default: string
  instances: ValuesAcrossInstances
  about: string
  file: string | null
}

export const command = defineCommand({
  onlyLooks: true,
  description: 'print every environment variable with its default and purpose',
  options: [
    ['--effective', 'print the values in use here with their source; secrets only as set or not set'],
    ['--json', 'print JSON'],
  ],
  help: `--effective prints what a daemon started here would use, and exits with 2 if it could not start. A running daemon has the values
from its start.

Examples:
  outboxd config --effective
  outboxd --env-file /etc/outboxd/env config --effective --json`,
  async action(context, options): Promise<number> {
    if (options.effective) return printEffective(context, options)
    const rows = Object.entries(variables).map(([name, variable]) => describe(name, variable))
    if (options.json) printJson(context, rows)
    else context.stdout.write(markdown(rows))
    return exitCodes.done
  },
})

type ConfigOptions = OptionsOf<typeof command>

function printEffective(context: CommandContext, { json }: ConfigOptions): number {
  const rows = readEffectiveVariables(context)
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
  return mistakes.length > 0 ? exitCodes.usage : exitCodes.done
}

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
      ? (shownDefault ?? (parsed.data === undefined ? 'none' : formatInVariableUnit(name, parsed.data)))
      : 'required',
    instances,
    about,
    file: secret ? `${name}_FILE` : null,
  }
}

const alike: Readonly<Record<string, string>> = {
  'same: reported': 'same',
  'same: refused': 'same, or no start',
} satisfies Partial<Record<ValuesAcrossInstances, string>>

function markdown(rows: readonly Row[]): string {
  const lines = rows.map(({ name, default: shown, instances, about, file }) => {
    const what = file ? `${about}; or \`${file}\`` : about
    return `| \`${name}\` | ${shown} | ${alike[instances] ?? 'own'} | ${what.replaceAll('|', '\\|')} |`
  })
  return ['| variable | default | instances | what it sets |', '|---|---|---|---|', ...lines, ''].join('\n')
}

export interface EffectiveVariable {
  name: string
  /** The value in the variable's unit; for a secret `set` or `not set`; null if missing or invalid. */
  value: string | null
  /** `environment`, `default`, or the path of a file; null without a value. */
  from: string | null
  problem: string | null
}

function readEffectiveVariables({ env, envFile = null }: CommandContext): EffectiveVariable[] {
  const fromOf = (name: string): string =>
    envFile?.values[name] !== undefined && envFile.values[name] === env[name] ? envFile.path : 'environment'
  return Object.entries(variables).map(([name, variable]) => {
    const { value, problem } = readOne(name as keyof typeof variables, env)
    const shown = show(name, variable, value)
    const from = source(name, variable, env, fromOf) ?? (shown === null || shown === notSet ? null : 'default')
    return { name, value: shown, from, problem }
  })
}

function readOne(name: keyof typeof variables, env: Environment): { value: unknown; problem: string | null } {
  const { value, done } = createVariableReader(variables, env)
  try {
    const read = done(value(name))
    return { value: name === 'MAPPINGS_DIR' ? readMappingsDirOrExamples(env) : read, problem: null }
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error
    return { value: undefined, problem: error.problems.join('; ') }
  }
}

function source(name: string, { secret }: Variable, env: Environment, fromOf: (name: string) => string): string | null {
  const file = secret ? env[`${name}_FILE`] : undefined
  if (file) return file
  return env[name] ? fromOf(name) : null
}

const notSet = 'not set'

function show(name: string, { secret, shownDefault }: Variable, value: unknown): string | null {
  if (secret) return value === undefined ? (shownDefault ?? notSet) : 'set'
  if (value === undefined) return null
  return name.endsWith('_FILE') ? resolve(String(value)) : formatInVariableUnit(name, value)
}
