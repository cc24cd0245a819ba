import { expect, test } from 'vitest'
import { createWakeup } from '../../src/daemon/loop.ts'

const longMs = 600_000

test('a wake ends the current wait', async () => {
  const { sleep, wake } = createWakeup()
  const waiting = sleep(longMs)
  wake()
  await waiting
})

test('a wake before a wait skips this wait and later ones, until it is reset', async () => {
  const { sleep, wake, reset } = createWakeup()
  wake()
  await sleep(longMs)
  await sleep(longMs)
  reset()
  let isOver = false
  const waiting = sleep(longMs).then(() => {
    isOver = true
  })
  await new Promise(setImmediate)
  expect(isOver).toBe(false)
  wake()
  await waiting
})

test('without a wake, the wait ends by itself', async () => {
  await createWakeup().sleep(1)
})
