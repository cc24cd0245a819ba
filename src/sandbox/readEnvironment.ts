import { parse } from 'yaml'
import { z } from 'zod'
import { isEmbedded, optionsSchema, type SandboxSettings } from './sandboxSettings.ts'

export type EnvironmentResult =
  | { kind: 'value'; settings: SandboxSettings; borrowed: FallbackVariable[] }
  | { kind: 'invalid'; problems: string[] }

interface FallbackVariable {
  from: string
  own: string
}

export function readSettingsFromEnvironment(
  env: Record<string, string | undefined>,
  readFile: (path: string) => string,
  cliOptions: Record<string, unknown> = {},
): EnvironmentResult {
  const overrides = Object.fromEntries(Object.entries(cliOptions).filter(([, value]) => value !== undefined))
  const problems: string[] = []
  const raw: Record<string, unknown> = {}
  const borrowed: FallbackVariable[] = []
  for (const [key, { names, schema, secret }] of Object.entries(settingVariables)) {
    const [own = ''] = names
    const ofDaemon = env.SANDBOX_CLIENTS || env.SANDBOX_CLIENTS_FILE ? daemonClientVariables : []
    for (const name of names.filter((each) => !ofDaemon.includes(each))) {
      const text = env[name] || (secret ? fromFile(env, name, readFile, problems) : undefined)
      if (!text || key in raw) continue
      raw[key] = readValue(schema, text)
      if (name !== own && !(key in overrides)) borrowed.push({ from: env[name] ? name : `${name}_FILE`, own })
    }
  }
  if (raw.clients !== undefined && (raw.clientId ?? raw.clientSecret) !== undefined)
    problems.push('SANDBOX_CLIENTS lists all clients: SANDBOX_CLIENT_ID and SANDBOX_CLIENT_SECRET must not be set')
  const given = { ...raw, ...overrides }
  const parsed = optionsSchema.safeParse(given)
  if (parsed.success && problems.length === 0) {
    const used = borrowed.filter(({ own }) => own !== 'SANDBOX_DATABASE_URL' || !isEmbedded(parsed.data))
    return { kind: 'value', settings: parsed.data, borrowed: used }
  }
  for (const issue of parsed.error?.issues ?? []) problems.push(sentence(issue.path, issue.message, given))
  return { kind: 'invalid', problems }
}

function fromFile(
  env: Record<string, string | undefined>,
  name: string,
  readFile: (path: string) => string,
  problems: string[],
): string | undefined {
  const path = env[`${name}_FILE`]
  if (!path) return undefined
  try {
    return readFile(path).trim()
  } catch (error) {
    problems.push(`${name}_FILE: ${path} cannot be read (${error instanceof Error ? error.message : String(error)})`)
    return undefined
  }
}

function sentence([key, ...within]: PropertyKey[], message: string, given: Record<string, unknown>): string {
  const names = settingVariables[key as keyof SandboxSettings]?.names ?? [String(key)]
  return String(key) in given
    ? [names[0], within.join('.'), message].filter((part) => part !== '').join(': ')
    : `none of ${names.join(', ')} is set: set one, or use --embedded`
}

/** Ignored if SANDBOX_CLIENTS is set, because that lists all clients. */
const daemonClientVariables: readonly string[] = ['SERVICE_CLIENT_ID', 'SERVICE_CLIENT_SECRET']

/** The daemon's variables, read if the setting's own variable is not set. */
const borrowable: Partial<Record<keyof SandboxSettings, readonly string[]>> = {
  databaseUrl: ['DATABASE_URL'],
  clientId: ['SERVICE_CLIENT_ID'],
  clientSecret: ['SERVICE_CLIENT_SECRET'],
}

/** Settings that may come from a file: `SANDBOX_CLIENTS_FILE` names the file for `clients`. */
const secrets: readonly string[] = ['databaseUrl', 'clientId', 'clientSecret', 'clients', 'controlToken']

interface Variables {
  names: string[]
  schema: z.ZodType
  secret: boolean
}

export const settingVariables = Object.fromEntries(
  Object.entries(optionsSchema.shape).map(([key, schema]): [string, Variables] => {
    const own = `SANDBOX_${key.replace(/[A-Z]/g, '_$&').toUpperCase()}`
    const names = [own, ...(borrowable[key as keyof SandboxSettings] ?? [])]
    return [key, { names, schema, secret: secrets.includes(key) }]
  }),
) as Record<keyof SandboxSettings, Variables>

/** Keeps the text if the schema accepts text, splits it at commas if the schema wants a list, else parses YAML. */
function readValue(schema: z.ZodType, text: string): unknown {
  if (schema.safeParse(text).success) return text
  const value = asYaml(text)
  const isList = z.array(z.string()).safeParse(schema.safeParse(undefined).data).success
  return isList ? text.split(',').flatMap((item) => item.trim() || []) : value
}

function asYaml(text: string): unknown {
  try {
    return parse(text)
  } catch {
    return text
  }
}
