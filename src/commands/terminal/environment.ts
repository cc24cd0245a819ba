import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parse } from 'dotenv'
import { ConfigInvalid, type Environment, type Variable } from '../../readVariables.ts'
import { variables } from '../../variables.ts'
import { nearestWord } from '../../yaml/nearestWord.ts'

export interface EnvironmentFile {
  path: string
  values: Record<string, string>
  /** True if the file does not set MAPPINGS_DIR and a folder `mappings` lies beside it. */
  impliesMappings: boolean
}

/** Reads the named file, or in development `.env` if there is one. @throws ConfigInvalid */
export function findEnvironmentFile(named: string | undefined, env: Environment): EnvironmentFile | null {
  if (named !== undefined) return readEnvironmentFile(named)
  return env.NODE_ENV !== 'production' && existsSync('.env') ? readEnvironmentFile('.env') : null
}

/** The file beside which the mappings lie; null unless that file implies the folder. */
export function impliedBy(env: Environment, file: EnvironmentFile | null): string | null {
  return file?.impliesMappings && env.MAPPINGS_DIR === file.values.MAPPINGS_DIR ? file.path : null
}

/**
 * Reads a file of variables so that a command works from any folder: relative paths in it, and its `mappings`, start at
 * the file's folder.
 * @throws ConfigInvalid if it cannot be read
 */
export function readEnvironmentFile(path: string): EnvironmentFile {
  const folder = dirname(resolve(path))
  const mappings = join(folder, 'mappings')
  const given = parse(readText(path))
  const impliesMappings = existsSync(mappings) && given.MAPPINGS_DIR === undefined
  const values = impliesMappings ? { MAPPINGS_DIR: mappings, ...given } : given
  for (const [name, value] of Object.entries(values))
    if (isPath(name) && value !== '') values[name] = resolve(folder, value)
  return { path, values, impliesMappings }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigInvalid([
      `cannot read the file of variables ${resolve(path)} (${(error as NodeJS.ErrnoException).code})`,
    ])
  }
}

const isPath = (name: string) => name === 'MAPPINGS_DIR' || name.endsWith('_FILE')

/** Joins both: the process's variables win, and an empty one counts as not set. */
export function withFile(env: Environment, file: EnvironmentFile | null): Environment {
  const set = Object.entries(env).filter(([, value]) => value !== '')
  return { ...file?.values, ...Object.fromEntries(set) }
}

export interface EnvironmentNotes {
  /** Variables that endanger secrets. */
  warnings: string[]
  notes: string[]
}

/** Names variables without their values: a proxy's address may hold a password. */
export function findEnvironmentNotes(env: Environment): EnvironmentNotes {
  const options = (env.NODE_OPTIONS ?? '').split(/\s+/).map((option) => option.replace(/=.*/s, ''))
  const has = (option: RegExp) => options.some((each) => option.test(each))
  return {
    warnings: [
      ...(has(/^--tls-keylog$/)
        ? [
            'NODE_OPTIONS has --tls-keylog: the keys of our connections are written to a file, and with it whoever can record them reads tokens, secrets and records; take it out',
          ]
        : []),
      ...(has(/^--inspect/)
        ? [
            'NODE_OPTIONS has --inspect: whoever reaches its port reads every secret of this process and can run code in it; take it out',
          ]
        : []),
    ],
    notes: [...proxyNotes(env), ...authorityNotes(env, has)],
  }
}

const proxyVariable = /^((https?|all|no)_proxy|node_use_env_proxy)$/i

function proxyNotes(env: Environment): string[] {
  const names = Object.keys(env).filter((name) => proxyVariable.test(name) && env[name])
  if (names.length === 0) return []
  const which = names.length === 1 ? 'it' : 'them'
  return [
    `${names.sort().join(', ')} set, and outboxd does not use ${which}: SERVICE_PROXY names the proxy to the service`,
  ]
}

function authorityNotes(env: Environment, has: (option: RegExp) => boolean): string[] {
  const names = [
    ...(['NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA'] as const).filter((name) => env[name]),
    ...(has(/^--use-(openssl|system|bundled)-ca$/) ? ['NODE_OPTIONS'] : []),
  ]
  if (names.length === 0) return []
  const meaning = env.SERVICE_CA_FILE
    ? 'that holds for the databases alone: of the service we believe SERVICE_CA_FILE'
    : 'for the service, SERVICE_CA_FILE says it apart from the databases'
  return [`${names.join(', ')} set: Node takes from it which authorities we believe; ${meaning}`]
}

const known: readonly string[] = Object.entries(variables).flatMap(([name, { secret }]: [string, Variable]) =>
  secret ? [name, `${name}_FILE`] : [name],
)

/** Names variables that look like a slip of ours. They are no errors, because other programs have variables, too. */
export function findMistypedVariables(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !known.includes(name))
    .sort()
    .flatMap((name) => {
      const meant = meantBy(name)
      return meant === null ? [] : [`the variable ${name} is set, and outboxd does not read it; did you mean ${meant}?`]
    })
}

/**
 * Finds the variable that was meant: up to two letters differ (one in six), a part is left out, or the unit differs.
 */
function meantBy(name: string): string | null {
  const steps = Math.min(2, Math.floor(name.length / 6))
  // A short name is near to many, so it must begin as ours does.
  const candidates = name.length < shortBelow ? known.filter((each) => each.startsWith(firstPart(name))) : known
  return nearestWord(name, candidates, steps) ?? known.find((each) => isLeftOut(name, each)) ?? null
}

const shortBelow = 11
const firstPart = (name: string) => name.slice(0, name.indexOf('_') + 1)

/** REQUEST_TIMEOUT or REQUEST_TIMEOUT_MS for REQUEST_TIMEOUT_SECONDS, SERVICE_URL for SERVICE_BASE_URL. */
function isLeftOut(name: string, of: string): boolean {
  const parts = name.split('_')
  const whole = of.split('_')
  if (parts.length < 2 || parts[0] !== whole[0]) return false
  const own = units.has(parts.at(-1) ?? '') ? parts.slice(0, -1) : parts
  let at = 0
  for (const part of whole) if (part === own[at]) at += 1
  return at === own.length && own.length > 1
}

const units = new Set(['MS', 'MILLISECONDS', 'SECONDS', 'SECOND', 'SECS', 'SEC', 'MINUTES', 'S', 'BYTES', 'KB', 'MB'])
