import { expect, test } from 'vitest'
import { type ChainingDeps, createChaining } from '../../../src/daemon/maintenance/chaining.ts'

type Round = Awaited<ReturnType<ChainingDeps['chain']>>

function setup(round: Partial<Round>) {
  const told: unknown[] = []
  let nowMs = 0
  const asked: boolean[] = []
  const chaining = createChaining({
    async chain(goOn) {
      asked.push(goOn())
      nowMs += 20_000
      asked.push(goOn())
      return { end: 'through', endOfDay: null, behindMs: 0, ...round }
    },
    elapsedMs: () => nowMs,
    onEndOfDay: (head) => told.push(head),
    showBehind: (behindMs) => told.push(behindMs),
  })
  return { chaining, told, asked }
}

test('it says how far it is behind, and where the chain stood when a day was over', async () => {
  const endOfDay = { number: '7', hash: 'abc' }
  const { chaining, told } = setup({ behindMs: 5, endOfDay })
  expect(await chaining.runOnce()).toBe(30_000)
  expect(told).toEqual([endOfDay, 5])
})

test('a round ends after 20 s, and the next goes on at once', async () => {
  const { chaining, asked } = setup({ end: 'begun' })
  expect(await chaining.runOnce()).toBe(0)
  expect(asked).toEqual([true, false])
})

test('it ends where the daemon stops', async () => {
  const { chaining, asked } = setup({})
  chaining.giveUp()
  await chaining.runOnce()
  expect(asked).toEqual([false, false])
})
