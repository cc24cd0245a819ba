import { expect, test } from 'vitest'
import { createSemaphore } from '../../src/console/createSemaphore.ts'

test('two things go on at once, ten wait for their turn, and one more is told to come later', async () => {
  const turns = createSemaphore(2, 10)
  const begun: Disposable[] = []
  const asked = Array.from({ length: 12 }, () => turns.take().then((turn) => begun.push(turn)))
  await expect(turns.take()).rejects.toThrow('Try again in a moment')
  expect(begun).toHaveLength(2)
  for (let i = 0; i < 12; i++) {
    await asked[i]
    begun[i]?.[Symbol.dispose]()
  }
  expect(begun).toHaveLength(12)
  expect(turns.isIdle()).toBe(true)
})

test('work that fails gives its turn to the next', async () => {
  const turns = createSemaphore(1, 1)
  const fail = async () => {
    using _ = await turns.take()
    throw new Error('no')
  }
  const failing = fail()
  const next = turns.take()
  await expect(failing).rejects.toThrow('no')
  using _ = await next
})
