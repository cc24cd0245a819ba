import { execFileSync } from 'node:child_process'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { escapeControl, quoteForShell, renderTable, terminalOf, truncateToOneLine } from '../src/plainText.ts'

test('columns are aligned, and the last one is not padded', () => {
  expect(
    renderTable(
      ['A', 'B'],
      [
        ['long', 'x'],
        ['s', ''],
      ],
    ),
  ).toBe('A     B\nlong  x\ns\n')
})

test('text from the service cannot move the cursor or hide a line', () => {
  expect(escapeControl('a\u001b[2Kb\rc\u202ed')).toBe('a\\u001b[2Kb\\u000dc\\u202ed')
  expect(escapeControl('a\u061cb\u200bc\ufeffd')).toBe('a\\u061cb\\u200bc\\ufeffd')
  expect(renderTable(['A'], [['x\u001b[31m']])).not.toContain('\u001b')
})

test('a text is cut to one line, never within a character', () => {
  expect(truncateToOneLine('one\n two', 20)).toBe('one two')
  expect(truncateToOneLine('abc😀def', 5)).toBe('abc…')
})

test.each(['outbox:4711', '', 'B 3', "it's", '$(id)`id`;id&id', 'a\nb"\\'])('a shell reads %j as one word', (word) => {
  expect(execFileSync('sh', ['-c', `printf %s ${quoteForShell(word)}`], { encoding: 'utf8' })).toBe(word)
})

test('a plain word needs no quotes', () => {
  expect(quoteForShell('outbox:4711')).toBe('outbox:4711')
})

describe('on a terminal', () => {
  const terminal = (columns: number, colours: boolean) =>
    terminalOf(Object.assign(new PassThrough(), { isTTY: true, columns, getColorDepth: () => (colours ? 8 : 1) }))
  const table = (columns: number, colours = false) =>
    renderTable(['ID', 'ERROR'], [['1', 'x'.repeat(60)]], terminal(columns, colours)).split('\n')

  test('the last column is cut at the end of the line, if enough room is left', () => {
    expect(table(40)[1]).toBe(`1   ${'x'.repeat(35)}…`)
    expect(table(80)[1]).toHaveLength(64)
    expect(table(20)[1]).toHaveLength(64)
  })

  test('a cell has the colour of its content, and the columns stay aligned', () => {
    const table = (colours: boolean) =>
      renderTable(
        ['STATE', 'ERROR'],
        [
          ['failed', 'x'.repeat(60)],
          ['queued', ''],
        ],
        terminal(40, colours),
        (column, cell) => (column === 'STATE' && cell === 'failed' ? 'red' : undefined),
      ).split('\n')
    expect(table(true).slice(1)).toEqual([`\u001b[31mfailed\u001b[39m  ${'x'.repeat(31)}…`, 'queued', ''])
    expect(table(false)[1]).toBe(`failed  ${'x'.repeat(31)}…`)
  })

  test('the head is bold if the terminal has colours', () => {
    expect(table(80, true)[0]).toBe('\u001b[1mID  ERROR\u001b[22m')
    expect(table(80, false)[0]).toBe('ID  ERROR')
    expect(terminalOf(new PassThrough())).toBe(null)
  })
})
