import { expect, test } from 'vitest'
import { cut, printable, table } from '../../src/commands/table.ts'

test('columns are aligned, the last is as wide as it is', () => {
  expect(
    table(
      ['A', 'B'],
      [
        ['long', 'x'],
        ['s', ''],
      ],
    ),
  ).toBe('A     B\nlong  x\ns\n')
})

test('what the service wrote cannot move the cursor or hide a line', () => {
  expect(printable('a\u001b[2Kb\rc\u202ed')).toBe('a\\u001b[2Kb\\u000dc\\u202ed')
  expect(table(['A'], [['x\u001b[31m']])).not.toContain('\u001b')
})

test('a text is cut to one line, never within a character', () => {
  expect(cut('one\n two', 20)).toBe('one two')
  expect(cut('abc😀def', 5)).toBe('abc\uFFFD…')
})
