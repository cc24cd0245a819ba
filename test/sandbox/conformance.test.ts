import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** docs/reference/conformance.md: each sentence of docs/reference/interface.md, and the test that shows it. */

const root = join(import.meta.dirname, '..', '..')
const page = (name: string) => readFileSync(join(root, 'docs', name), 'utf8')
const notShown = 'why/contract.md#every-not-shown'

/** What the interface says, sentence by sentence: of each row of a table its cells, of lists and paragraphs each sentence. */
function statements(text: string): string[] {
  const numbered = text.slice(text.search(/^## 1\b/m))
  return numbered.split(/\n\s*\n/).flatMap((block) => {
    const lines = block
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('#'))
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

function sentences(text: string): string[] {
  return text.split(/(?<=\.) (?=[A-Z`])/).filter((sentence) => sentence !== '')
}

const table = page('reference/conformance.md')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| The interface'))
  .map(cells)
const said = statements(page('reference/interface.md'))

test('every sentence of the interface has its row, in its order', () => {
  expect(said.length).toBeGreaterThan(80)
  expect(table.map(([statement]) => statement)).toEqual(said)
})

test('every row names a test that is there, or says that nothing was shown', () => {
  for (const [statement = '', shownBy = ''] of table) {
    const [, file = '', name = ''] = /^(\S+\.test\.ts): (.+)$/.exec(shownBy) ?? []
    if (file === '')
      expect(`${statement} ${shownBy}`).toMatch(new RegExp(`not shown.*${notShown}|^Nor are.*${notShown}`))
    else expect(isTest(file, name), `${file}: ${name}`).toBe(true)
  }
})

/** Whether the file has a test, or a case of one, of that name. */
function isTest(file: string, name: string): boolean {
  const path = join(root, 'test', file)
  const source = existsSync(path) ? readFileSync(path, 'utf8') : ''
  return ["'", '"', '`'].some((quote) => source.includes(`${quote}${name}${quote}`))
}
