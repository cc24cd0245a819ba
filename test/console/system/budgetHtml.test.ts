import { expect, test } from 'vitest'
import { budgetHtml } from '../../../src/console/system/budgetHtml.ts'

test('the budget shows what is free, and when a request becomes free again', () => {
  const budget = {
    ...{ limit: 100, windowMs: 60_000, free: 91, nextFreeMs: null },
    ...{ submissions: 3, polls: 2, tokens: 1, questions: 1, ofOtherClients: 2, underWay: 1 },
  }
  expect(budgetHtml(budget).toString()).toContain('<strong class="number">91</strong> of')
  expect(budgetHtml({ ...budget, free: 0, nextFreeMs: 400 }).toString()).toContain('free, the next within a second<')
  expect(budgetHtml({ ...budget, free: 0, nextFreeMs: 7_000 }).toString()).toContain('free, the next in 7 s<')
})
