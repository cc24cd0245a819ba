import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type ConfigOptions, config } from '../../src/commands/config.ts'
import { variables } from '../../src/config.ts'
import { testContext } from '../support/context.ts'

test('the README’s table is the one that the command prints', async () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const between = /<!-- variables -->\n([\s\S]*?)<!-- \/variables -->/.exec(readme)?.[1]
  const remedy = 'put the output of `node src/main.ts config` between the two markers of README.md'
  expect(between?.trim(), remedy).toBe((await run({})).trim())
})

test('every variable has a row, with the default in the unit of its name', async () => {
  const table = await run({})
  for (const name of Object.keys(variables)) expect(table).toContain(`| \`${name}\` |`)
  expect(table).toContain('| `RATE_LIMIT_WINDOW_SECONDS` | 60 |')
  expect(table).toContain('| `UNAVAILABLE_PAUSE_SECONDS` | 300 |')
  expect(table).toContain('| `MAX_IN_FLIGHT` | 8 |')
  expect(table).toContain('| `DATABASE_URL` | required |')
  expect(table).toContain('| `STATE_DATABASE_URL` | DATABASE_URL |')
  expect(table).toContain('| `SERVICE_CA_FILE` | none |')
})

test('as JSON it says which secrets may come from a file', async () => {
  const rows: { name: string; file: string | null }[] = JSON.parse(await run({ json: true }))
  expect(rows.filter(({ file }) => file).map(({ file }) => file)).toEqual([
    'DATABASE_URL_FILE',
    'STATE_DATABASE_URL_FILE',
    'SERVICE_CLIENT_ID_FILE',
    'SERVICE_CLIENT_SECRET_FILE',
  ])
})

async function run(options: ConfigOptions): Promise<string> {
  const context = testContext({})
  expect(await config(context, options)).toBe(0)
  return context.printed()
}
