import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkout } from './support/program.ts'

const page = (name: string) => readFileSync(join(checkout, 'docs', name), 'utf8')
const threats = [...page('why/security.md').matchAll(/^\| (\d+) \| .+ \| .+ \|$/gm)].map(([, number]) => Number(number))
const shownBy = [...page('reference/threats.md').matchAll(/^\| (\d+) \| (.+) \|$/gm)].map(
  ([, number, tests = '']) => [Number(number), tests] as const,
)

test('docs/why/security.md has 20 threats and more, each with a control, and with tests in docs/reference/threats.md', () => {
  expect(threats.length).toBeGreaterThanOrEqual(20)
  expect(threats).toEqual(threats.map((_, index) => index + 1))
  expect(shownBy.map(([number]) => number)).toEqual(threats)
})

test.each(shownBy)('threat %s: the tests that are named are there under these names', (_, tests) => {
  const cited = [...tests.matchAll(/`(test\/[^`]+)`((?:: |, )?(?:"[^"]+"(?:, )?)+)/g)]
  expect(cited).not.toEqual([])
  for (const [, file = '', names = ''] of cited)
    for (const [, name = ''] of names.matchAll(/"([^"]+)"/g))
      expect(readFileSync(join(checkout, file), 'utf8'), `${file}: ${name}`).toContain(name)
})
