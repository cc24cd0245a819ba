import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { faultSchema } from '../../src/sandbox/faults/faults.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/start/sandbox.md'), 'utf8')

test('docs/start/sandbox.md lists every kind of fault', () => {
  for (const { shape } of faultSchema.options) expect(page).toContain(`\n| ${shape.kind.value} |`)
})
