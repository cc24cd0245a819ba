import { expect, test } from 'vitest'
import { type ChainingDeps, createChaining } from '../../../src/daemon/maintenance/chaining.ts'

type Round = Awaited<ReturnType<ChainingDeps['chain']>>

function setup(round: Partial<Round>, verified: Awaited<ReturnType<ChainingDeps['verifyLastDay']>>[] = []) {
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
    async verifyLastDay(goOn) {
      asked.push(goOn())
      return verified.shift() ?? { end: 'through', broken: null }
    },
    async tellBroken(broken) {
      told.push({ broken })
    },
    onEndOfDay: (head) => told.push(head),
    showBehind: (behindMs) => told.push(behindMs),
  })
  return { chaining, told, asked }
}

test('it says how far it is behind, and where the chain stood when a day was over', async () => {
  const endOfDay = { number: '7', hash: 'abc' }
  const { chaining, told } = setup({ behindMs: 5, endOfDay })
  expect(await chaining.runOnce()).toBe(30_000)
  expect(told).toEqual([endOfDay, 5, { broken: null }])
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
  expect(asked).toEqual([false, false, false])
})

test('the last day is verified at the start, in parts, and what is broken is told; that it holds ends no problem by day', async () => {
  const broken = setup({}, [{ end: 'begun' }, { end: 'through', broken: 'event 7 was changed' }])
  expect(await broken.chaining.runOnce()).toBe(0)
  expect(await broken.chaining.runOnce()).toBe(30_000)
  expect(await broken.chaining.runOnce()).toBe(30_000)
  expect(broken.told).toEqual([0, 0, { broken: 'event 7 was changed' }, 0])
  const whole = setup({})
  await whole.chaining.runOnce()
  expect(whole.told).toEqual([0])
})

test('the last day is verified each night, as the chain begins another day: that it holds ends the problem', async () => {
  const { chaining, told } = setup({ endOfDay: { number: '7', hash: 'abc' } }, [
    { end: 'through', broken: null },
    { end: 'through', broken: 'block 8 was changed' },
  ])
  await chaining.runOnce()
  await chaining.runOnce()
  expect(told.filter((each) => typeof each === 'object' && each !== null && 'broken' in each)).toEqual([
    { broken: null },
    { broken: 'block 8 was changed' },
  ])
})
