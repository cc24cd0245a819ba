import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkout } from './support/program.ts'
import { threatTests } from './threatTests.ts'

const page = readFileSync(join(checkout, 'docs', 'why', 'security.md'), 'utf8')
const threats = [...page.matchAll(/^\| (\d+) \| .+ \| .+ \|$/gm)].map(([, number]) => Number(number))

test('docs/why/security.md has at least 20 threats, each with a control, and with tests in test/threatTests.ts', () => {
  expect(threats.length).toBeGreaterThanOrEqual(20)
  expect(threats).toEqual(threats.map((_, index) => index + 1))
  expect(Object.keys(threatTests).map(Number)).toEqual(threats)
})

test.each(Object.entries(threatTests))('threat %s: its tests exist under these names', (_, tests) => {
  const cited = Object.entries(tests)
  expect(cited).not.toEqual([])
  for (const [file, names] of cited) {
    expect(names, file).not.toEqual([])
    for (const name of names) expect(readFileSync(join(checkout, file), 'utf8'), `${file}: ${name}`).toContain(name)
  }
})
