import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parse } from 'dotenv'
import { ConfigInvalid, type Environment } from '../../readVariables.ts'

/** Variables that were read from a file. */
export interface EnvironmentFile {
  path: string
  values: Record<string, string>
  /** Whether MAPPINGS_DIR is not in the file, but follows from a folder `mappings` beside it. */
  impliesMappings: boolean
}

/** Reads the named file of variables; in development without a name `.env`, if there is one. @throws ConfigInvalid */
export function findEnvironmentFile(named: string | undefined, env: Environment): EnvironmentFile | null {
  if (named !== undefined) return readEnvironmentFile(named)
  return env.NODE_ENV !== 'production' && existsSync('.env') ? readEnvironmentFile('.env') : null
}

/** The file of variables beside which the folder of mappings lies; null if the process itself, or nothing, names the folder. */
export function impliedBy(env: Environment, file: EnvironmentFile | null): string | null {
  return file?.impliesMappings && env.MAPPINGS_DIR === file.values.MAPPINGS_DIR ? file.path : null
}

/**
 * Reads a file of variables, `NAME=value` a line, so that a command works from any folder: a relative path in it starts at
 * the file's own folder, and so does the folder `mappings` where the file names no other.
 *
 * @throws ConfigInvalid where it cannot be read
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

/** All variables: what is set for the process goes before what the file says. An empty one counts as not set. */
export function withFile(env: Environment, file: EnvironmentFile | null): Environment {
  const set = Object.entries(env).filter(([, value]) => value !== '')
  return { ...file?.values, ...Object.fromEntries(set) }
}
