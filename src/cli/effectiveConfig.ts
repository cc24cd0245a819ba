import { resolve } from 'node:path'
import { inUnit, readMappingsDir } from '../config.ts'
import { ConfigInvalid, type Environment, readVariables, type Variable } from '../readVariables.ts'
import { variables } from '../variables.ts'
import type { CommandContext } from './context.ts'

/** A variable as it is in force. */
export interface EffectiveVariable {
  name: string
  /** In the variable's own unit; of a secret `set` or `not set` alone; null where there is none, or it is invalid. */
  value: string | null
  /** `environment`, `default`, or the file it came from; null where it is not set and has no default. */
  from: string | null
  /** What is wrong with it; null where nothing is. */
  problem: string | null
}

/** Every variable with the value that a daemon started here and now would have, and where that comes from. */
export function effectiveConfig({ env, envFile = null }: CommandContext): EffectiveVariable[] {
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
  const { value, done } = readVariables(variables, env)
  try {
    const read = done(value(name))
    return { value: name === 'MAPPINGS_DIR' ? readMappingsDir(env) : read, problem: null }
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
  return name.endsWith('_FILE') ? resolve(String(value)) : inUnit(name, value)
}
