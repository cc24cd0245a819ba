import { expect, test } from 'vitest'
import { createPruning, type PruningDeps } from '../../../src/daemon/maintenance/pruning.ts'

type Deps = PruningDeps<{ submissions: number }>

function setup(given: Partial<Deps>) {
  const said: unknown[] = []
  const part = createPruning<{ submissions: number }>({
    prune: async () => 'through',
    readOverdueMs: async () => 0,
    elapsedMs: () => 0,
    onPruned: (pruned) => said.push(pruned),
    showOverdue: (ms) => said.push(ms),
    tellBehind: async (problems) => void said.push(problems.map(({ detail }) => detail)),
    ...given,
  })
  return { part, said }
}

test('a round says what it did, once, and the next comes when it is woken', async () => {
  const { part, said } = setup({
    async prune(_, onProgress) {
      onProgress({ submissions: 50 })
      onProgress({ submissions: 80 })
      return 'through'
    },
  })
  expect(await part.runOnce()).toBe(90_000)
  expect(said).toEqual([{ submissions: 80 }, 0, []])
})

test('a round ends after 20 s, and the next goes on at once; none begins a batch when the daemon stops', async () => {
  let nowMs = 0
  let batches = 0
  const { part } = setup({
    elapsedMs: () => nowMs,
    async prune(goOn) {
      for (; goOn(); batches++) nowMs += 1_000
      return 'begun'
    },
  })
  expect(await part.runOnce()).toBe(0)
  expect(batches).toBe(20)
  part.giveUp()
  await part.runOnce()
  expect(batches).toBe(20)
})

test('what was done is said, too, where the round failed', async () => {
  const { part, said } = setup({
    async prune(_, onProgress) {
      onProgress({ submissions: 50 })
      throw new Error('the database went away')
    },
  })
  await expect(part.runOnce()).rejects.toThrow('went away')
  expect(said).toEqual([{ submissions: 50 }])
})

test('what has been due for more than a day is a problem until it is gone', async () => {
  let overdueMs = 3 * 86_400_000
  const { part, said } = setup({ readOverdueMs: async () => overdueMs })
  await part.runOnce()
  expect(said).toEqual([overdueMs, [expect.stringContaining('due for 3 days')]])
  overdueMs = 3_600_000
  await part.runOnce()
  expect(said.slice(2)).toEqual([overdueMs, []])
})
