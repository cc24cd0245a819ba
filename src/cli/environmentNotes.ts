import type { Environment } from '../readVariables.ts'

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
