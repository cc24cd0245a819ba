import { expect, test } from 'vitest'
import { runEachStep } from '../../src/daemon/loop.ts'

test('steps that fail keep no other from being taken, and the first is thrown at the end', async () => {
  const taken: number[] = []
  const step = (n: number, error?: Error) => async () => {
    taken.push(n)
    if (error) throw error
  }
  const first = new Error('first')
  await expect(runEachStep([step(1), step(2, first), step(3, new Error('second')), step(4)])).rejects.toBe(first)
  expect(taken).toEqual([1, 2, 3, 4])
})
