import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parse } from 'dotenv'
import { ConfigInvalid, type Environment, type Variable } from '../../readVariables.ts'
import { variables } from '../../variables.ts'
import { nearestWord } from '../../yaml/nearestWord.ts'

export interface EnvironmentFile {
  path: string
  values: Record<string, string>
  /** True if the file does not set MAPPINGS_DIR and its folder has a folder `mappings`. */
  impliesMappings: boolean
}

/** Reads the named file, or in development `.env` if there is one. @throws ConfigInvalid */
export function findEnvironmentFile(named: string | undefined, env: Environment): EnvironmentFile | null {
  if (named !== undefined) return readEnvironmentFile(named)
  return env.NODE_ENV !== 'production' && existsSync('.env') ? readEnvironmentFile('.env') : null
}

/** Returns the path of the variables file whose sibling folder `mappings` is used; null if none is. */
export function findFileGivingMappingsFolder(env: Environment, file: EnvironmentFile | null): string | null {
  return file?.impliesMappings && env.MAPPINGS_DIR === file.values.MAPPINGS_DIR ? file.path : null
}

/**
 * Reads a file of variables. Relative paths in it, and `mappings`, start at its folder.
 * @throws ConfigInvalid
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
    throw new ConfigInvalid([`--env-file: cannot read ${resolve(path)} (${(error as NodeJS.ErrnoException).code})`])
  }
}

const isPath = (name: string) => name === 'MAPPINGS_DIR' || name.endsWith('_FILE')

/** Variables of the process win over the file unless they are empty. */
export function addEnvironmentFile(env: Environment, file: EnvironmentFile | null): Environment {
  const set = Object.entries(env).filter(([, value]) => value !== '')
  return { ...file?.values, ...Object.fromEntries(set) }
}

export interface EnvironmentNotes {
  warnings: string[]
  notes: string[]
}

/** Warns of variables that change what Node does. Names them without values, which may hold a password. */
export function reviewNodeVariables(env: Environment): EnvironmentNotes {
  const options = (env.NODE_OPTIONS ?? '').split(/\s+/).map((option) => option.replace(/=.*/s, ''))
  const has = (option: RegExp) => options.some((each) => option.test(each))
  return {
    warnings: [
      ...(has(/^--tls-keylog$/)
        ? ['NODE_OPTIONS has --tls-keylog, which writes the keys of all connections to a file: remove it']
        : []),
      ...(has(/^--inspect/)
        ? ['NODE_OPTIONS has --inspect, which opens a port that gives access to every secret: remove it']
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
  return [`${names.sort().join(', ')} set, but outboxd does not use ${which}: set SERVICE_PROXY instead`]
}

function authorityNotes(env: Environment, has: (option: RegExp) => boolean): string[] {
  const names = [
    ...(['NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA'] as const).filter((name) => env[name]),
    ...(has(/^--use-(openssl|system|bundled)-ca$/) ? ['NODE_OPTIONS'] : []),
  ]
  if (names.length === 0) return []
  const meaning = env.SERVICE_CA_FILE
    ? 'this applies only to the databases, because SERVICE_CA_FILE is set for the service'
    : 'to trust other authorities for the service than for the databases, set SERVICE_CA_FILE'
  return [`${names.join(', ')} set, which changes the authorities that Node trusts; ${meaning}`]
}

const known: readonly string[] = Object.entries(variables).flatMap(([name, { secret }]: [string, Variable]) =>
  secret ? [name, `${name}_FILE`] : [name],
)

/**
 * Finds variables that look like a mistyped one of ours. The caller only warns, because other programs have variables,
 * too.
 */
export function findMistypedVariables(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !known.includes(name))
    .sort()
    .flatMap((name) => {
      const meant = meantBy(name)
      return meant === null ? [] : [`the variable ${name} is not one of outboxd's; did you mean ${meant}?`]
    })
}

/** Finds the intended variable: at most two letters differ, a part is missing, or the unit differs. */
function meantBy(name: string): string | null {
  const steps = Math.min(2, Math.floor(name.length / 6))
  // Short names resemble many, so they must begin like ours.
  const candidates = name.length < shortBelow ? known.filter((each) => each.startsWith(firstPart(name))) : known
  return nearestWord(name, candidates, steps) ?? known.find((each) => isLeftOut(name, each)) ?? null
}

const shortBelow = 11
const firstPart = (name: string) => name.slice(0, name.indexOf('_') + 1)

/**
 * True for REQUEST_TIMEOUT or REQUEST_TIMEOUT_MS instead of REQUEST_TIMEOUT_SECONDS, or SERVICE_URL instead of
 * SERVICE_BASE_URL.
 */
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
