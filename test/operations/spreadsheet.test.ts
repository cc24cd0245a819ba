import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { csvLine, escapeFormulas, unescapeFormulas } from '../../src/operations/spreadsheet.ts'

/** The cells as a spreadsheet may see them: with any separator, and without regard for quotes. */
const cellsOf = (text: string) => text.split(/[,;\t|\r\n]/).map((cell) => cell.replace(/^[\s"]+/, ''))

test.each([
  ['x;=1+1;y', "x;'=1+1;y"],
  ['=1+1', "'=1+1"],
  [' =1+1', "' =1+1"],
  ['"=1+1"', `'"=1+1"`],
  ['x;"=1+1"', `x;'"=1+1"`],
  ['a,+1|@b', "a,'+1|'@b"],
  ['x;\u00a0-2', "x;'\u00a0-2"],
  ['＝1+1', "'＝1+1"],
  ['-12.50', '-12.50'], // an amount
  ['-1+1', "'-1+1"],
  ['2026-11-03T10:00Z queued: a=b', '2026-11-03T10:00Z queued: a=b'],
])('%j is escaped as %j, and read back unchanged', (text, shown) => {
  expect(escapeFormulas(text)).toBe(shown)
  expect(unescapeFormulas(shown)).toBe(text)
})

const hostile = fc.string({ unit: fc.constantFrom(...`=+-@;,\t|"' \n\r＝1ax`), maxLength: 30 })

test('no text begins a cell that a spreadsheet calculates, and each text is read back unchanged', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const shown = escapeFormulas(text)
      if (!/^-\d+(\.\d+)?$/.test(text)) expect(cellsOf(shown).filter((cell) => /^[=+\-@＝]/.test(cell))).toEqual([])
      expect(unescapeFormulas(shown)).toBe(text)
    }),
  )
})

test('cells with a semicolon or a tab are quoted, so that no reader splits them there', () => {
  const line = csvLine(['x;=1+1;y', 'tab\there', 'plain'])
  expect(line).toBe(`"x;'=1+1;y","tab\there",plain\n`)
  expect(parse(line)).toEqual([["x;'=1+1;y", 'tab\there', 'plain']])
})
