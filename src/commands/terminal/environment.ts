import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parse } from 'dotenv'
import { ConfigInvalid, type Environment, type Variable } from '../../createVariableReader.ts'
import { variables } from '../../variables.ts'
import { findNearestWord } from '../../yaml/nearestWord.ts'

export interface EnvironmentFile {
  path: string
  values: Record<string, string>
  /** True if the file does not set MAPPINGS_DIR and its folder has a folder `mappings`. */
  setsMappingsByDefault: boolean
}

/** Reads the file `named`, or `.env` unless NODE_ENV is production. @throws ConfigInvalid */
export function findEnvironmentFile(named: string | undefined, env: Environment): EnvironmentFile | null {
  if (named !== undefined) return readEnvironmentFile(named)
  return env.NODE_ENV !== 'production' && existsSync('.env') ? readEnvironmentFile('.env') : null
}

/** @returns null unless MAPPINGS_DIR is the folder `mappings` beside the variables file */
export function findEnvFileThatImpliesMappingsDir(env: Environment, file: EnvironmentFile | null): string | null {
  return file?.setsMappingsByDefault && env.MAPPINGS_DIR === file.values.MAPPINGS_DIR ? file.path : null
}

/**
 * Resolves relative paths in the file, and `mappings`, from the file's folder.
 * @throws ConfigInvalid if the file cannot be read, or if a value would be cut at a `#`
 */
export function readEnvironmentFile(path: string): EnvironmentFile {
  const folder = dirname(resolve(path))
  const mappings = join(folder, 'mappings')
  const text = readText(path)
  const given = parse(text)
  const cut = findCutValues(text)
  if (cut.length > 0)
    throw new ConfigInvalid(
      cut.map(
        (name) =>
          `--env-file: ${resolve(path)}: # begins a comment in the value of ${name}: put the whole value in single quotes, or a space before the comment`,
      ),
    )
  const setsMappingsByDefault = existsSync(mappings) && given.MAPPINGS_DIR === undefined
  const values = setsMappingsByDefault ? { MAPPINGS_DIR: mappings, ...given } : given
  for (const [name, value] of Object.entries(values))
    if (isPath(name) && value !== '') values[name] = resolve(folder, value)
  return { path, values, setsMappingsByDefault }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const what = code === 'ENOENT' ? `there is no file ${resolve(path)}` : `cannot read ${resolve(path)} (${code})`
    throw new ConfigInvalid([`--env-file: ${what}`])
  }
}

/** Finds variables whose value dotenv would silently cut at a `#`: without a space before it, or after a quote that is not closed. */
function findCutValues(text: string): string[] {
  const cut: string[] = []
  for (const [, name = '', , beforeSign] of text.matchAll(valuesWithSign)) {
    if (beforeSign === undefined) continue
    const beginsWithQuote = /^\s*['"`]/.test(beforeSign)
    const isComment = /\s$/.test(beforeSign)
    if (beginsWithQuote || !isComment) cut.push(name)
  }
  return [...new Set(cut)]
}

/** As dotenv reads lines: a value in quotes may span lines, and any other value ends before its first `#`. */
const valuesWithSign =
  /^\s*(?:export\s+)?([\w.-]+)(?:\s*=|:(?=\s))(?:[ \t]*(['"`])(?:\\\2|(?!\2)[\s\S])*\2(?:[ \t]+#.*|[ \t]*)$|([^#\r\n]*)#)/gm

const isPath = (name: string) => name === 'MAPPINGS_DIR' || name.endsWith('_FILE')

/** Variables of the process win over those of the file unless empty. */
export function mergeEnvironmentFile(env: Environment, file: EnvironmentFile | null): Environment {
  const set = Object.entries(env).filter(([, value]) => value !== '')
  return { ...file?.values, ...Object.fromEntries(set) }
}

/** Warns of Node options that give secrets away. */
export function findUnsafeNodeOptions({ NODE_OPTIONS = '' }: Environment): string[] {
  return [
    ...(/(^|\s)--tls-keylog/.test(NODE_OPTIONS)
      ? ['NODE_OPTIONS has --tls-keylog, which writes the keys of all connections to a file: remove it']
      : []),
    ...(/(^|\s)--inspect/.test(NODE_OPTIONS)
      ? ['NODE_OPTIONS has --inspect, which opens a port that gives access to every secret: remove it']
      : []),
  ]
}

const known: readonly string[] = Object.entries(variables).flatMap(([name, { secret }]: [string, Variable]) =>
  secret ? [name, `${name}_FILE`] : [name],
)

/** Callers only warn, because other programs have variables, too. */
export function findMistypedVariables(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !known.includes(name))
    .sort()
    .flatMap((name) => {
      const meant = meantBy(name)
      return meant === null ? [] : [`the variable ${name} is not one of outboxd's; did you mean ${meant}?`]
    })
}

/** At most two letters differ, or the end is missing, as in REQUEST_TIMEOUT. */
function meantBy(name: string): string | null {
  const steps = Math.min(2, Math.floor(name.length / 6))
  // A short name resembles many variables, so its first word must be the same.
  const begins = name.length < shortBelow ? name.slice(0, name.indexOf('_') + 1) : ''
  const candidates = known.filter((each) => each.startsWith(begins))
  return findNearestWord(name, candidates, steps) ?? known.find((each) => each.startsWith(`${name}_`)) ?? null
}

const shortBelow = 11
