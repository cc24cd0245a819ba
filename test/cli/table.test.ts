import { expect, test } from 'vitest'
import { escapeControl, renderTable, truncate } from '../../src/cli/table.ts'

test('columns are aligned, the last is as wide as it is', () => {
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

test('what the service wrote cannot move the cursor or hide a line', () => {
  expect(escapeControl('a\u001b[2Kb\rc\u202ed')).toBe('a\\u001b[2Kb\\u000dc\\u202ed')
  expect(renderTable(['A'], [['x\u001b[31m']])).not.toContain('\u001b')
})

test('a text is cut to one line, never within a character', () => {
  expect(truncate('one\n two', 20)).toBe('one two')
  expect(truncate('abc😀def', 5)).toBe('abc\uFFFD…')
})
