import { expect, test } from 'vitest'
import { judgeService } from './judgeService.ts'

const from = Number(process.env.SEED ?? 1)
const count = Number(process.env.SERVICES ?? (process.env.LONG ? 30 : 2))
const seeds = Array.from({ length: count }, (_, i) => from + i)

test.each(seeds)('of the service of seed %i every setting is named as it is, or said not to be known', async (seed) => {
  const { wrong, named } = await judgeService(seed)
  expect(wrong).toEqual([])
  expect(named).toBeGreaterThan(25)
})
