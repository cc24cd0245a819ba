import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { faultSchema } from '../../src/sandbox/faults/faults.ts'
import { environment, optionsSchema } from '../../src/sandbox/startSandbox.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/sandbox.md'), 'utf8')

test.each(Object.entries(environment))('docs/sandbox.md lists the setting %s with its variables and default', (key, {
  names,
}) => {
  const line = page.split('\n').find((each) => each.startsWith(`| ${key} |`)) ?? ''
  for (const name of names) expect(line).toContain(name)
  const fallback = optionsSchema.shape[key as keyof typeof environment].safeParse(undefined).data
  if (fallback !== undefined && fallback !== null) expect(line).toContain(`\`${fallback}\``)
})

test('docs/sandbox.md lists every kind of fault', () => {
  for (const { shape } of faultSchema.options) expect(page).toContain(`\n| ${shape.kind.value} |`)
})
