import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { conformance, notShown } from './conformanceTable.ts'

/** Each sentence of docs/reference/interface.md has a test that shows it, which conformanceTable.ts names. */

const root = join(import.meta.dirname, '..', '..')

/** Each heading of the interface that has text of its own, with its sentences. */
function sections(text: string): [heading: string, sentences: string[]][] {
  return text
    .slice(text.search(/^## 1\b/m))
    .split(/^#+ /m)
    .map((section): [string, string[]] => {
      const [heading = '', ...lines] = section.split('\n')
      return [heading, statements(lines.join('\n'))]
    })
    .filter(([, sentences]) => sentences.length > 0)
}

/** The statements of a section: one for each row of a table, one for each sentence of lists and paragraphs. */
function statements(text: string): string[] {
  return text.split(/\n\s*\n/).flatMap((block) => {
    const lines = block.trim().split('\n')
    if (lines[0]?.startsWith('|'))
      return lines
        .slice(2)
        .map(cells)
        .map((row) => row.filter(Boolean).join(', '))
    const items = lines.join('\n').split(/\n(?=- |\d\. )/)
    return items.flatMap((item) => sentences(item.replace(/^(- |\d\. )/, '').replace(/\s*\n\s*/g, ' ')))
  })
}

function cells(row: string): string[] {
  return row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())
}

/** Splits a text into sentences, and replaces links by their text. */
function sentences(text: string): string[] {
  return text
    .split(/(?<=\.) (?=[A-Z`])/)
    .filter((sentence) => sentence !== '')
    .map((sentence) => sentence.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'))
}

const said = sections(readFileSync(join(root, 'docs/reference/interface.md'), 'utf8'))
const rows = Object.values(conformance).flat()

test('every sentence of the interface has its row, in its order', () => {
  expect(rows.length).toBeGreaterThan(60)
  const table = Object.entries(conformance).map(([heading, each]) => [heading, each.map(([sentence]) => sentence)])
  expect(table).toEqual(said)
})

test('every row names a test that exists, or is marked as not shown', () => {
  for (const [sentence, ...tests] of rows) {
    expect(tests.length, sentence).toBeGreaterThan(0)
    for (const shownBy of tests) {
      const [, file = '', name = ''] = /^(\S+\.test\.ts): (.+)$/.exec(shownBy) ?? []
      if (shownBy === notShown) expect(sentence).toMatch(/not shown/)
      else expect(isTest(file, name), shownBy).toBe(true)
    }
  }
})

/** Whether the file has a test, or a row of a test, with that name. */
function isTest(file: string, name: string): boolean {
  const path = join(root, 'test', file)
  const source = existsSync(path) ? readFileSync(path, 'utf8') : ''
  return ["'", '"', '`'].some((quote) => source.includes(`${quote}${name}${quote}`))
}
