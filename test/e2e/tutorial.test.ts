import { expect, test } from 'vitest'
import { hasPsql, readSteps, typeSteps } from '../support/typePage.ts'

const steps = await readSteps('start/tutorial.md')

test('the page has steps, and most of them say what is printed', () => {
  expect(steps.length).toBeGreaterThan(10)
  expect(steps.filter(({ printed }) => printed !== undefined).length).toBeGreaterThan(8)
})

test.skipIf(!hasPsql)('the tutorial does what it says', { timeout: 300_000 }, () => typeSteps(steps))
