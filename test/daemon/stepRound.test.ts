import { expect, test } from 'vitest'
import { createStepRound } from '../../src/daemon/loop.ts'

test('a failing step does not stop the others, and the first error is thrown at the end', async () => {
  const taken: number[] = []
  const step = (n: number, error?: Error) => async () => {
    taken.push(n)
    if (error) throw error
  }
  const first = new Error('first')
  const round = createStepRound([step(1), step(2, first), step(3, new Error('second')), step(4)])
  await expect(round()).rejects.toBe(first)
  expect(taken).toEqual([1, 2, 3, 4])
})

test('after a step that waited long for the database the round ends, and the next round goes on from there', async () => {
  const timeout = new Error('Query read timeout')
  const state = { ms: 0 }
  const taken: number[] = []
  const waiting = async () => {
    state.ms += 25_000
    throw timeout
  }
  const steps = [waiting, async () => void taken.push(2), async () => void taken.push(3)]
  const round = createStepRound(steps, () => state.ms)
  await expect(round()).rejects.toBe(timeout)
  expect(taken).toEqual([])
  await expect(round()).rejects.toBe(timeout)
  expect(taken).toEqual([2, 3])
})
