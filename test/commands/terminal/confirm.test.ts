import { expect, test } from 'vitest'
import { askForConfirmation } from '../../../src/commands/terminal/confirm.ts'
import { testContext } from '../../support/context.ts'

test.each([
  ['y\n', true],
  ['Yes\n', true],
  ['n\n', false],
  ['\n', false],
  ['yess\n', false],
  ['', false],
])('%j is confirmed: %j', async (input, isYes) => {
  const context = testContext({}, input)
  expect(await askForConfirmation(context, 'Sure?')).toBe(isYes)
  expect(context.messages()).toContain('Sure? [y/N]')
})

test('if standard input is not a terminal, no question is asked and the answer is no', async () => {
  const context = testContext({})
  context.stdin.end('y\n')
  expect(await askForConfirmation(context, 'Sure?')).toBe(false)
  expect(context.messages()).toMatch(/^Nothing was changed\. .*\(Sure\?\): add --yes\.\n$/)
  expect(await askForConfirmation(context, 'Sure?', { inScript: true })).toBe(true)
})

test('Ctrl-C at the question counts as no', async () => {
  const context = testContext({})
  context.stdin.isTTY = true
  const asked = askForConfirmation(context, 'Sure?')
  context.abort()
  expect(await asked).toBe(false)
})
