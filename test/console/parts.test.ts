import { setTimeout as after } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { shareRecentRead } from '../../src/console/parts.ts'
import { until } from '../support/until.ts'

test('a shared read serves all callers once, and is repeated when it is old or after it failed', async () => {
  let reads = 0
  let fails = true
  const read = shareRecentRead(systemClock, 50, async () => {
    reads += 1
    await after(5)
    if (fails) throw new Error('away')
    return reads
  })
  const failed = await Promise.allSettled(Array.from({ length: 10 }, () => read()))
  expect(failed.every(({ status }) => status === 'rejected')).toBe(true)
  expect(reads).toBe(1)
  fails = false
  expect(await Promise.all(Array.from({ length: 10 }, () => read()))).toEqual(Array(10).fill(2))
  await until(read, (n) => n === 3)
})
