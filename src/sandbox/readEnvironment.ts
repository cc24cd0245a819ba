import { parse } from 'yaml'
import { z } from 'zod'
import { optionsSchema, type SandboxSettings } from './sandboxSettings.ts'
import { settingMessage } from './settingsWrong.ts'

export type EnvironmentRead =
  | { kind: 'value'; settings: SandboxSettings; borrowed: Borrowed[] }
  | { kind: 'invalid'; problems: string[] }

export interface Borrowed {
  setting: keyof SandboxSettings
  from: string
  own: string
}

export function readEnvironment(
  env: Record<string, string | undefined>,
  readFile: (path: string) => string,
  overrides: Partial<SandboxSettings> = {},
): EnvironmentRead {
  const problems: string[] = []
  const raw: Record<string, unknown> = {}
  const takenFrom: Record<string, string> = {}
  for (const [key, { names, read, secret }] of Object.entries(settingVariables)) {
    for (const name of names.toReversed()) {
      const text = env[name] ?? (secret ? fromFile(env, name, readFile, problems) : undefined)
      if (text) [raw[key], takenFrom[key]] = [read(text), env[name] === undefined ? `${name}_FILE` : name]
    }
  }
  if (raw.clients !== undefined) leaveOneClient(raw, takenFrom, problems)
  const given = { ...raw, ...overrides }
  const parsed = optionsSchema.safeParse(given, { error: settingMessage })
  if (parsed.success && problems.length === 0) {
    return { kind: 'value', settings: parsed.data, borrowed: borrowedOf(takenFrom, overrides) }
  }
  for (const issue of parsed.error?.issues ?? []) problems.push(sentence(issue.path, issue.message, given))
  return { kind: 'invalid', problems }
}

function borrowedOf(takenFrom: Record<string, string>, overrides: Partial<SandboxSettings>): Borrowed[] {
  const settings = Object.entries(settingVariables) as [keyof SandboxSettings, { names: string[] }][]
  return settings.flatMap(([setting, { names }]) => {
    const [from, own] = [takenFrom[setting], names[0]]
    const isBorrowed =
      from !== undefined && own !== undefined && !from.startsWith(own) && overrides[setting] === undefined
    return isBorrowed ? [{ setting, from, own }] : []
  })
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

/** SANDBOX_CLIENTS replaces the daemon's client. A SANDBOX_CLIENT_ID as well is a mistake. */
function leaveOneClient(raw: Record<string, unknown>, takenFrom: Record<string, string>, problems: string[]): void {
  for (const key of ['clientId', 'clientSecret']) {
    const from = takenFrom[key]
    if (from?.startsWith('SANDBOX_'))
      problems.push(`${from}: must not be set together with SANDBOX_CLIENTS, which lists all clients`)
    delete raw[key]
    delete takenFrom[key]
  }
}

function sentence([key, ...within]: PropertyKey[], message: string, given: Record<string, unknown>): string {
  const names = settingVariables[key as keyof SandboxSettings]?.names ?? [String(key)]
  return String(key) in given
    ? [names[0], within.join('.'), message].filter((part) => part !== '').join(': ')
    : `${names.join(' or ')} is not set: set it, or use --embedded`
}

/** Variables of the daemon that are used if the sandbox's own is not set. */
const borrowable: Partial<Record<keyof SandboxSettings, readonly string[]>> = {
  databaseUrl: ['STATE_DATABASE_URL', 'DATABASE_URL'],
  clientId: ['SERVICE_CLIENT_ID'],
  clientSecret: ['SERVICE_CLIENT_SECRET'],
}

/** May come from a file, such as `SANDBOX_CLIENTS_FILE`. */
const secrets: readonly string[] = ['databaseUrl', 'clientId', 'clientSecret', 'clients', 'controlToken']

interface Variables {
  names: string[]
  read: (text: string) => unknown
  secret: boolean
}

export const settingVariables = Object.fromEntries(
  Object.entries(optionsSchema.shape).map(([key, schema]) => [key, variablesOf(key as keyof SandboxSettings, schema)]),
) as Record<keyof SandboxSettings, Variables>

function variablesOf(key: keyof SandboxSettings, schema: z.ZodType): Variables {
  const own = `SANDBOX_${key.replace(/[A-Z]/g, '_$&').toUpperCase()}`
  return { names: [own, ...(borrowable[key] ?? [])], read: readerOf(schema), secret: secrets.includes(key) }
}

/** Keeps wrong text, so that the schema refuses it. */
function readerOf(schema: z.ZodType): Variables['read'] {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodNullable || schema instanceof z.ZodOptional)
    return readerOf(schema.unwrap() as z.ZodType)
  if (schema instanceof z.ZodArray)
    return schema.element instanceof z.ZodObject
      ? asYaml
      : (text) => text.split(',').flatMap((item) => item.trim() || [])
  if (schema instanceof z.ZodBoolean)
    return (text) => ({ true: true, '1': true, false: false, '0': false })[text.toLowerCase()] ?? text
  const isNumber = (each: unknown) => each instanceof z.ZodNumber
  return isNumber(schema) || (schema instanceof z.ZodUnion && schema.options.some(isNumber)) ? asNumber : (text) => text
}

function asNumber(text: string): unknown {
  return text.trim() === '' ? text : Number(text)
}

function asYaml(text: string): unknown {
  try {
    return parse(text)
  } catch {
    return text
  }
}
