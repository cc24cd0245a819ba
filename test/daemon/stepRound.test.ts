import { expect, test } from 'vitest'
import { createStepRound } from '../../src/daemon/loop.ts'

test('steps that fail keep no other from being taken, and the first is thrown at the end', async () => {
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

test('no step follows one that waited long for the database; the next round begins behind it', async () => {
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
