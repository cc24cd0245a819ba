import { expect, test } from 'vitest'
import { createComparing } from '../../../src/daemon/maintenance/comparing.ts'

function setup(...comparisons: ('not-due' | 'begun' | 'done')[]) {
  const asked: number[] = []
  const goesOn: (() => boolean)[] = []
  const comparing = createComparing({
    async compareLedger(everyMs, goOn) {
      asked.push(everyMs)
      goesOn.push(goOn)
      return comparisons.shift() ?? 'not-due'
    },
  })
  return { ...comparing, asked, goOn: () => goesOn.at(-1)?.() }
}

test('at the start those that were started together compare once, later each hour', async () => {
  const { runOnce, asked } = setup('not-due', 'done')
  for (let i = 0; i < 3; i++) expect(await runOnce()).toBe(60_000)
  expect(asked).toEqual([60_000, 60_000, 3_600_000])
})

test('a comparison that is long goes on at once', async () => {
  const { runOnce } = setup('begun', 'done')
  expect(await runOnce()).toBe(0)
  expect(await runOnce()).toBe(60_000)
})

test('one that is under way ends when the daemon stops', async () => {
  const { runOnce, giveUp, goOn } = setup('begun')
  await runOnce()
  expect(goOn()).toBe(true)
  giveUp()
  expect(goOn()).toBe(false)
})
