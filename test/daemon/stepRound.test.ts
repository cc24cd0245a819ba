import { expect, test } from 'vitest'
import { createStepRound } from '../../src/daemon/loop.ts'

test('a failing step ends the round, and the next round begins behind that step', async () => {
  const taken: number[] = []
  const step = (n: number, error?: Error) => async () => {
    taken.push(n)
    if (error) throw error
  }
  const failure = new Error('Query read timeout')
  const round = createStepRound([step(1), step(2, failure), step(3), step(4)])
  await expect(round()).rejects.toBe(failure)
  expect(taken.splice(0)).toEqual([1, 2])
  await expect(round()).rejects.toBe(failure)
  expect(taken.splice(0)).toEqual([3, 4, 1, 2])
})

test('a round takes all steps in their order', async () => {
  const taken: number[] = []
  const round = createStepRound([1, 2, 3].map((n) => async () => void taken.push(n)))
  await round()
  await round()
  expect(taken).toEqual([1, 2, 3, 1, 2, 3])
})
