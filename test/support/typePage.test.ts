import { expect, test } from 'vitest'
import { matches } from './typePage.ts'

test.each([
  ['a\nb', 'a\nb\n', true],
  ['a\nb', 'a\n', false],
  ['a 1 b', 'a … b\n', true],
  ['x\ny\nlast', '…\nlast\n', true],
  ['last', '…\nlast\n', true],
  ['x\nother', '…\nlast\n', false],
])('the output %j matches the page’s %j: %j', (seen, expected, does) => {
  expect(matches(seen, expected)).toBe(does)
})
