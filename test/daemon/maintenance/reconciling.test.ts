import { expect, test } from 'vitest'
import { createReconciling } from '../../../src/daemon/maintenance/reconciling.ts'

function setup(given: { stuckAfterMs?: number | null; released?: number } = {}) {
  const state = { overdueMs: 0, recreateFails: false, isBehind: false }
  const calls: string[] = []
  const call = (name: string) => async () => void calls.push(name)
  const reconciling = createReconciling<string>({
    supervise: call('supervise'),
    pollOverdueMs: () => state.overdueMs,
    async recreateMissingJobs() {
      calls.push('recreate')
      if (state.recreateFails) throw new Error('lock timeout')
      return 2
    },
    onJobsRecreated: (count) => calls.push(`recreated ${count}`),
    async releaseWaitingKeys() {
      calls.push('release')
      return given.released ?? 0
    },
    onReleased: () => calls.push('released'),
    deleteStaleInstances: call('delete'),
    pruneRequestCounts: call('prune'),
    stuckAfterMs: given.stuckAfterMs ?? null,
    async findStuck(ms) {
      calls.push(`find stuck after ${ms}`)
      return ['one']
    },
    replaceStuck: async (stuck) => void calls.push(`stuck: ${stuck}`),
    compactCounts: call('compact'),
    async sumUp() {
      calls.push('sum up')
      return state.isBehind
    },
  })
  return { ...reconciling, state, calls }
}

test('all is looked at in the first round and in each tenth after it', async () => {
  const { runOnce, calls } = setup()
  expect(await runOnce()).toBe(3_000)
  const whole = ['supervise', 'recreate', 'recreated 2', 'release', 'delete', 'prune', 'stuck: ', 'compact', 'sum up']
  expect(calls).toEqual(whole)
  for (let i = 0; i < 9; i++) await runOnce()
  expect(calls).toEqual(whole)
  await runOnce()
  expect(calls).toEqual([...whole, ...whole])
})

test('a poll that is long due is looked for at once: it may be in the hand of a dead instance', async () => {
  const { runOnce, state, calls } = setup()
  await runOnce()
  calls.length = 0
  state.overdueMs = 5_000
  await runOnce()
  expect(calls).toEqual([])
  state.overdueMs = 5_001
  await runOnce()
  expect(calls).toEqual(['supervise'])
})

test('what fails keeps nothing else from being done, and is thrown at the end', async () => {
  const { runOnce, state, calls } = setup()
  state.recreateFails = true
  await expect(runOnce()).rejects.toThrow('lock timeout')
  expect(calls).toEqual(['supervise', 'recreate', 'release', 'delete', 'prune', 'stuck: ', 'compact', 'sum up'])
})

test('whoever dispatches hears of records that may go now', async () => {
  const { runOnce, calls } = setup({ released: 3 })
  await runOnce()
  expect(calls).toContain('released')
})

test('transactions that the service does not end are told, where it is said after how long', async () => {
  const { runOnce, calls } = setup({ stuckAfterMs: 60_000 })
  await runOnce()
  expect(calls).toContain('find stuck after 60000')
  expect(calls).toContain('stuck: one')
})

test('minutes that were missed are made up for a few at each round', async () => {
  const { runOnce, state, calls } = setup()
  state.isBehind = true
  await runOnce()
  calls.length = 0
  await runOnce()
  expect(calls).toEqual(['sum up'])
  state.isBehind = false
  await runOnce()
  await runOnce()
  expect(calls).toEqual(['sum up', 'sum up'])
})
