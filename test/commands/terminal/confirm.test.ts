import { expect, test } from 'vitest'
import { askYesOrNo } from '../../../src/commands/terminal/confirm.ts'
import { testContext } from '../../support/context.ts'

test.each([
  ['y\n', 'yes'],
  ['Yes\n', 'yes'],
  ['n\n', 'no'],
  ['\n', 'no'],
  ['yess\n', 'no'],
  ['', 'no'],
])('%j is a %s', async (input, answer) => {
  const context = testContext({}, input)
  expect(await askYesOrNo(context, 'Sure?')).toBe(answer)
  expect(context.messages()).toContain('Sure? [y/N]')
})

test('where standard input is no terminal nobody is asked', async () => {
  const context = testContext({})
  context.stdin.end('y\n')
  expect(await askYesOrNo(context, 'Sure?')).toBe('no-terminal')
  expect(context.messages()).toBe('')
})

test('Ctrl-C while it asks is a no', async () => {
  const context = testContext({})
  context.stdin.isTTY = true
  const asked = askYesOrNo(context, 'Sure?')
  context.abort()
  expect(await asked).toBe('no')
})
