import type { Environment, Variable } from '../readVariables.ts'
import { variables } from '../variables.ts'
import { nearestWord } from '../yaml/nearestWord.ts'

/** Every name that we read. */
const known: readonly string[] = Object.entries(variables).flatMap(([name, { secret }]: [string, Variable]) =>
  secret ? [name, `${name}_FILE`] : [name],
)

/**
 * Says which variables of the environment look like a slip of one of ours, and are read by nobody: other programs have variables,
 * too, so that none of them is an error.
 *
 * @returns one sentence each, without a value
 */
export function findMistypedVariables(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !known.includes(name))
    .sort()
    .flatMap((name) => {
      const meant = meantBy(name)
      return meant === null ? [] : [`the variable ${name} is set, and outboxd does not read it; did you mean ${meant}?`]
    })
}

/** One letter in six may differ, two at most: HTTP_PROXY is not our HTTP_PORT. Or a part of the name is left out, or its unit is another. */
function meantBy(name: string): string | null {
  const steps = Math.min(2, Math.floor(name.length / 6))
  // Short names are near to many: theirs begin as ours do, or are not meant.
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
