import { expect, test } from 'vitest'
import { hasPsql, readSteps, typeSteps } from '../support/typePage.ts'

const steps = await readSteps('start/tutorial.md')

test('the tutorial has more than ten steps, and most of them show their output', () => {
  expect(steps.length).toBeGreaterThan(10)
  expect(steps.filter(({ printed }) => printed !== undefined).length).toBeGreaterThan(8)
})

test.skipIf(!hasPsql)('each step of the tutorial prints the output that the page shows', { timeout: 300_000 }, () =>
  typeSteps(steps),
)
