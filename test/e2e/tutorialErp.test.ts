import { expect, test } from 'vitest'
import { hasPsql, readSteps, typeSteps } from '../support/typePage.ts'

const steps = await readSteps('start/tutorial-erp.md')

test('at most ten commands lead from the ERP’s tables to the first order', () => {
  const upToOrder = steps.slice(0, steps.findIndex(({ typed }) => typed.includes('join outbox o')) + 1)
  const commands = upToOrder.flatMap(({ typed }) => typed.match(/^(?!export |cat )[a-z]+/gm) ?? [])
  expect(commands.length).toBeLessThanOrEqual(10)
})

test.skipIf(!hasPsql)('each step of the tutorial beside an ERP prints the output that the page shows', () =>
  typeSteps(steps),
)
