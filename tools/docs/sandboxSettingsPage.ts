import { z } from 'zod'
import { notShownSettings, notShownTopics } from '../../src/sandbox/notShownSettings.ts'
import { environment, optionsSchema } from '../../src/sandbox/startSandbox.ts'

type Name = keyof typeof environment

/** Settings that are also options of the command. */
const options: Partial<Record<Name, string>> = {
  ...{ embedded: '--embedded', dataDir: '--data', host: '--host', port: '--port', seed: '--seed', clock: '--clock' },
  ...{ scenario: '--scenario', insecureDefaults: '--insecure-defaults' },
}
const names = Object.keys(optionsSchema.shape)
const live = new Set(names.slice(names.indexOf('rateLimitRequests')))

/** The tables of the sandbox's settings: what it needs to run, and what the interface does not show. */
export function sandboxSettingsTables(): { settings: string; notShown: string } {
  const settings = (Object.keys(environment) as Name[])
    .filter((name) => !(name in notShownSettings))
    .map((name) => row(name, variablesOf(name), defaultOf(name), live.has(name) ? 'yes' : 'no', describe(name)))
  const notShown = Object.entries(notShownTopics).flatMap(([topic, shape]) => [
    row(topic, '', '', '', ''),
    ...Object.entries<z.ZodType>(shape).map(([name, schema]) =>
      row(
        name,
        variablesOf(name as Name),
        defaultOf(name as Name),
        valuesOf(z.toJSONSchema(schema) as JsonSchema),
        describe(name as Name),
      ),
    ),
  ])
  return {
    settings: ['| Setting | Variable | Default | Live | |', '|---|---|---|---|---|', ...settings].join('\n'),
    notShown: ['| Setting | Variable | Default | Values | |', '|---|---|---|---|---|', ...notShown].join('\n'),
  }
}

function defaultOf(name: Name): string {
  const value = optionsSchema.shape[name].safeParse(undefined).data
  return value === undefined || value === null ? 'none' : `\`${value}\``
}

function variablesOf(name: Name): string {
  const { names, secret } = environment[name]
  const quoted = names.map((each) => `\`${each}\``).join(', else ')
  const option = options[name] === undefined ? '' : `, \`${options[name]}\``
  return `${quoted}${option}${secret ? '; or from the file in the same name with `_FILE`' : ''}`
}

interface JsonSchema {
  anyOf?: JsonSchema[]
  type?: string | string[]
  const?: unknown
  enum?: string[]
  pattern?: string
  minimum?: number
  maximum?: number
}

function valuesOf(schema: JsonSchema): string {
  if (schema.anyOf) return schema.anyOf.map(valuesOf).filter(Boolean).join(', ')
  if (schema.type === 'null') return ''
  if (schema.const !== undefined) return String(schema.const)
  if (schema.type === 'boolean') return '`true`, `false`'
  if (schema.enum) return schema.enum.map((each) => `\`${each}\``).join(', ')
  if (schema.type === 'array') return 'a list'
  if ([schema.type].flat().includes('string')) return schema.pattern ? 'a word' : 'a text'
  return `${schema.minimum} to ${schema.maximum}`
}

function describe(name: Name): string {
  return optionsSchema.shape[name].description ?? ''
}

function row(...cells: string[]): string {
  return `| ${cells.join(' | ')} |`
}
