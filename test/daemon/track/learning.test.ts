import { expect, test } from 'vitest'
import { createPollPlanUpdater } from '../../../src/daemon/track/pollPlanner.ts'
import type { MovedPoll } from '../../../src/model.ts'

function setup(given: { moves?: MovedPoll[]; windowMs?: number } = {}) {
  const state = { mayReplan: false, readFails: false }
  const calls: string[] = []
  const learning = createPollPlanUpdater({
    planner: {
      learn: () => calls.push('learn'),
      mayReplan: () => state.mayReplan,
      replan: () => given.moves ?? [],
    },
    windowMs: given.windowMs ?? 60_000,
    async readProcessingTimes(limit) {
      if (state.readFails) throw new Error('the database is away')
      calls.push(`read ${limit} times`)
      return []
    },
    async readPlannedPolls(limit) {
      calls.push(`read ${limit} polls`)
      return []
    },
    movePolls: async (moves) => void calls.push(`move ${moves.length}`),
    onMoved: () => calls.push('moved'),
  })
  return { ...learning, state, calls }
}

const learned = ['read 600 times', 'learn']
const move: MovedPoll = { submissionId: 'a', jobId: 'job', inMs: 0 }

test('processing times are learned at the start, and again after transactions have ended', async () => {
  const { runOnce, onWritten, calls } = setup()
  await runOnce()
  await runOnce()
  expect(calls).toEqual(learned)
  onWritten([{ state: 'completed', polls: 2 }])
  await runOnce()
  await runOnce()
  expect(calls).toEqual([...learned, ...learned])
})

test('steps that end nothing, and records that were never polled, cause no learning', async () => {
  const { runOnce, onWritten, calls } = setup()
  await runOnce()
  onWritten([
    { state: 'accepted', polls: 3 },
    { state: 'rejected', polls: 0 },
  ])
  await runOnce()
  expect(calls).toEqual(learned)
})

test('if reading fails, the next round learns', async () => {
  const { runOnce, onWritten, state, calls } = setup()
  await runOnce()
  onWritten([{ state: 'failed', polls: 1 }])
  state.readFails = true
  await expect(runOnce()).rejects.toThrow('away')
  state.readFails = false
  await runOnce()
  expect(calls).toEqual([...learned, ...learned])
})

test('polls are moved earlier if replanning is due, and the dispatcher is notified', async () => {
  const { runOnce, state, calls } = setup({ moves: [move] })
  await runOnce()
  state.mayReplan = true
  await runOnce()
  expect(calls).toEqual([...learned, 'read 200 polls', 'move 1', 'moved'])
})

test('if no plan is better, no poll is moved', async () => {
  const { runOnce, state, calls } = setup()
  state.mayReplan = true
  await runOnce()
  expect(calls).toEqual([...learned, 'read 200 polls'])
})

test('rounds come each second, or more often if the window is short', async () => {
  expect(await setup().runOnce()).toBe(1_000)
  expect(await setup({ windowMs: 6_000 }).runOnce()).toBe(100)
})
