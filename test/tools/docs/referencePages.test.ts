import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { referencePages } from '../../../tools/docs/referencePages.ts'
import { checkout } from '../../support/program.ts'

const pages = await referencePages()

test.each([...pages.keys()])('%s is what `npm run docs:generate` writes', (path) => {
  expect(readFileSync(join(checkout, path), 'utf8'), 'run `npm run docs:generate`').toBe(pages.get(path))
})

test('every command that the README’s table names is a command', () => {
  const readme = readFileSync(join(checkout, 'README.md'), 'utf8')
  const table = readme.slice(readme.indexOf('## Commands'), readme.indexOf('## Where to read on'))
  const named = [...table.matchAll(/^\| `([a-z]+)/gm)].map(([, name]) => name)
  const all = [...(pages.get('docs/reference/commands.md') ?? '').matchAll(/^## ([a-z]+)$/gm)].map(([, name]) => name)
  expect(named).toHaveLength(8)
  expect(all).toEqual(expect.arrayContaining(named))
})
