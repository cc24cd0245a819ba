import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { command as config, type EffectiveVariable } from '../../src/commands/config.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import type { EnvironmentFile } from '../../src/commands/terminal/environment.ts'
import { variables } from '../../src/variables.ts'
import { testContext } from '../support/context.ts'

test('every variable has a row, with the default in the unit of its name', async () => {
  const table = await run({})
  for (const name of Object.keys(variables)) expect(table).toContain(`| \`${name}\` |`)
  expect(table).toContain('| `RATE_LIMIT_WINDOW_SECONDS` | 60 |')
  expect(table).toContain('| `UNAVAILABLE_PAUSE_SECONDS` | 300 |')
  expect(table).toContain('| `MAX_IN_FLIGHT` | 8 |')
  expect(table).toContain('| `DATABASE_URL` | required |')
  expect(table).toContain('| `SERVICE_CA_FILE` | none |')
})

test('--json names the file variable of each secret', async () => {
  const rows: { name: string; file: string | null }[] = JSON.parse(await run({ json: true }))
  expect(rows.filter(({ file }) => file).map(({ file }) => file)).toEqual([
    'DATABASE_URL_FILE',
    'SERVICE_CLIENT_ID_FILE',
    'SERVICE_CLIENT_SECRET_FILE',
    'SERVICE_PROXY_FILE',
    'OTEL_EXPORTER_OTLP_HEADERS_FILE',
  ])
})

describe('--effective', () => {
  const effective = async (env: Record<string, string>, envFile: EnvironmentFile | null = null) => {
    const context = { ...testContext({ ...envFile?.values, ...env }), envFile }
    const code = await config.action(context, { effective: true, json: true })
    const rows: EffectiveVariable[] = JSON.parse(context.printed())
    return {
      code,
      printed: context.printed() + context.messages(),
      of: (name: string) => rows.find((row) => row.name === name),
    }
  }
  const complete = {
    DATABASE_URL: 'postgres://erp:hunter2@db.example/erp',
    SERVICE_BASE_URL: 'https://service.example/',
    SERVICE_AUTH_URL: 'https://auth.example',
    SERVICE_CLIENT_ID: 'id-4711',
    SERVICE_CLIENT_SECRET: 'hunter3',
  }

  test('prints each effective value and where it comes from', async () => {
    const values = { HTTP_PORT: '9000', LOG_LEVEL: 'warn' }
    const file = { path: '/etc/outboxd/env', values, setsMappingsByDefault: false }
    const { code, of } = await effective({ ...complete, LOG_LEVEL: 'error', MAPPINGS_DIR: 'mine' }, file)
    expect(code).toBe(0)
    expect(of('HTTP_PORT')).toMatchObject({ value: '9000', from: '/etc/outboxd/env' })
    expect(of('LOG_LEVEL')).toMatchObject({ value: 'error', from: 'environment' })
    expect(of('RATE_LIMIT_WINDOW_SECONDS')).toMatchObject({ value: '60', from: 'default' })
    expect(of('SERVICE_BASE_URL')).toMatchObject({ value: 'https://service.example', from: 'environment' })
    expect(of('MAPPINGS_DIR')).toMatchObject({ value: resolve('mine'), from: 'environment' })
    expect(of('SERVICE_CA_FILE')).toMatchObject({ value: null, from: null })
  })

  test('says whether a secret is set, and never prints it', async () => {
    const { printed, of } = await effective(complete)
    expect(of('DATABASE_URL')).toMatchObject({ value: 'set', from: 'environment' })
    expect(printed).not.toMatch(/hunter|4711/)
  })

  test('reports invalid and missing variables, and exits with 2', async () => {
    const { code, printed, of } = await effective({ ...complete, MAX_IN_FLIGHT: 'many', SERVICE_AUTH_URL: '' })
    expect(code).toBe(2)
    expect(of('MAX_IN_FLIGHT')).toMatchObject({
      value: null,
      from: 'environment',
      problem: expect.stringContaining('"many"'),
    })
    expect(of('SERVICE_AUTH_URL')).toMatchObject({ value: null, from: null })
    expect(printed).toContain('outboxd: SERVICE_AUTH_URL is required')
  })
})

async function run(options: OptionsOf<typeof config>): Promise<string> {
  const context = testContext({})
  expect(await config.action(context, options)).toBe(0)
  return context.printed()
}
