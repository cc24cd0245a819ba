import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { faultSchema } from '../../src/sandbox/faults/faults.ts'
import { notShownSettings, notShownTopics } from '../../src/sandbox/notShownSettings.ts'
import { environment, optionsSchema } from '../../src/sandbox/startSandbox.ts'
import type { Json } from './setup.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/sandbox.md'), 'utf8')

type Name = keyof typeof environment

/** Settings that the command takes as options, too. */
const options: Partial<Record<Name, string>> = {
  ...{ embedded: '--embedded', dataDir: '--data', host: '--host', port: '--port', seed: '--seed', clock: '--clock' },
  ...{ scenario: '--scenario', insecureDefaults: '--insecure-defaults' },
}
const live = new Set(
  Object.keys(optionsSchema.shape).slice(Object.keys(optionsSchema.shape).indexOf('rateLimitRequests')),
)

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

function othersOf(schema: Json): string {
  if (schema.anyOf) return schema.anyOf.map(othersOf).filter(Boolean).join(', ')
  if (schema.type === 'null') return ''
  if (schema.const !== undefined) return String(schema.const)
  if (schema.type === 'boolean') return '`true`, `false`'
  if (schema.enum) return schema.enum.map((each: string) => `\`${each}\``).join(', ')
  if (schema.type === 'array') return 'a list'
  if ([schema.type].flat().includes('string')) return schema.pattern ? 'a word' : 'a text'
  return `${schema.minimum} to ${schema.maximum}`
}

const describe = (name: Name) => optionsSchema.shape[name].description
const row = (...cells: unknown[]) => `| ${cells.join(' | ')} |\n`

const settings = Object.keys(environment)
  .filter((name) => !(name in notShownSettings))
  .map((name) =>
    row(
      name,
      variablesOf(name as Name),
      defaultOf(name as Name),
      live.has(name) ? 'yes' : 'no',
      describe(name as Name),
    ),
  )

const notShown = Object.entries(notShownTopics).flatMap(([topic, shape]) => [
  `| ${topic} | | | | |\n`,
  ...Object.entries<z.ZodType>(shape).map(([name, schema]) =>
    row(
      name,
      variablesOf(name as Name),
      defaultOf(name as Name),
      othersOf(z.toJSONSchema(schema)),
      describe(name as Name),
    ),
  ),
])

/** The page with the rows of the table that begins so. */
function withRows(text: string, head: string, rows: string[]): string {
  const [before = '', after = ''] = text.split(head)
  return `${before}${head}${rows.join('')}${after.slice(after.indexOf('\n\n') + 1)}`
}

test('docs/sandbox.md lists every setting (to write its tables anew: npm test -- test/sandbox/docs -u)', async () => {
  const first = withRows(page, '| Setting | Variable | Default | Live | |\n|---|---|---|---|---|\n', settings)
  const both = withRows(first, '| Setting | Variable | Default | Else | |\n|---|---|---|---|---|\n', notShown)
  await expect(both).toMatchFileSnapshot('../../docs/sandbox.md')
})

test('docs/sandbox.md lists every kind of fault', () => {
  for (const { shape } of faultSchema.options) expect(page).toContain(`\n| ${shape.kind.value} |`)
})
