import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkout } from './support/program.ts'

const page = readFileSync(join(checkout, 'docs', 'security.md'), 'utf8')
const threats = [...page.matchAll(/^\| (\d+) \| (.+) \| (.+) \| (.+) \|$/gm)]

test('docs/security.md has 20 threats and more, each with a control, and a test that it names', () => {
  expect(threats.length).toBeGreaterThanOrEqual(20)
  expect(threats.map(([, number]) => Number(number))).toEqual(threats.map((_, index) => index + 1))
})

test.each(
  threats.map(([, number, , , tests = '']) => [number, tests] as const),
)('threat %s: the tests that are named are there under these names', (_, tests) => {
  const cited = [...tests.matchAll(/`(test\/[^`]+)`((?:: |, )?(?:"[^"]+"(?:, )?)+)/g)]
  expect(cited).not.toEqual([])
  for (const [, file = '', names = ''] of cited)
    for (const [, name = ''] of names.matchAll(/"([^"]+)"/g))
      expect(readFileSync(join(checkout, file), 'utf8'), `${file}: ${name}`).toContain(name)
})
