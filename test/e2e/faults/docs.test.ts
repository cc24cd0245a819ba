import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

test('docs/reference/faults.md names at least 40 faults, each with a test that is there', () => {
  const text = readFileSync(join(import.meta.dirname, '..', '..', '..', 'docs', 'reference', 'faults.md'), 'utf8')
  const tests = [...text.matchAll(/^\| \d+ \|.*\| (\S+\.test\.ts) \|$/gm)].map(([, file = '']) => file)
  expect(tests.length).toBeGreaterThanOrEqual(40)
  expect(tests.filter((file) => !existsSync(join(import.meta.dirname, file)))).toEqual([])
})
