import type { Environment, Variable } from '../../readVariables.ts'
import { variables } from '../../variables.ts'
import { nearestWord } from '../../yaml/nearestWord.ts'

/** What variables mean that are not ours, and that somebody may expect to steer our connections. */
export interface EnvironmentNotes {
  /** What endangers secrets. */
  warnings: string[]
  /** What is worth knowing. */
  notes: string[]
}

/** Sentences, each with a variable's name and no value: a proxy's address may hold a password. */
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
