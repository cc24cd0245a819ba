import { expect, test } from 'vitest'
import { createTouching } from '../../../src/daemon/maintenance/touching.ts'
import type { PollJob } from '../../../src/model.ts'

test('the polls in hand are touched; with none in hand nobody is asked', async () => {
  const touched: PollJob[][] = []
  let jobs: PollJob[] = []
  const { runOnce } = createTouching({
    pollsInHand: () => jobs,
    touch: async (each) => void touched.push([...each]),
  })
  expect(await runOnce()).toBe(3_000)
  jobs = [{ id: 'job', retryCount: 1 }]
  await runOnce()
  expect(touched).toEqual([[{ id: 'job', retryCount: 1 }]])
})
