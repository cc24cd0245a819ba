import { expect, test } from 'vitest'
import { fitWindow } from '../../../src/commands/terminal/statusView.ts'

test('what fits is shown as it is, with the last row left free', () => {
  expect(fitWindow(['a', 'b', ''], { columns: 10, rows: 4 })).toEqual(['a', 'b', ''])
})

test('what does not fit gives way to a line that says so; a line that wraps counts as often', () => {
  expect(fitWindow(['a', 'b', 'c', 'd'], { columns: 40, rows: 4 })).toEqual(['a', 'b', '… more than the window shows'])
  expect(fitWindow(['x'.repeat(81), 'b', 'c'], { columns: 40, rows: 5 })).toEqual([
    'x'.repeat(81),
    '… more than the window shows',
  ])
})
