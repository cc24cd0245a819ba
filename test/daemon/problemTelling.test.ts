import { expect, test } from 'vitest'
import { createProblemReporter } from '../../src/daemon/heartbeat.ts'

function setup() {
  const state = {
    waitsLong: false,
    blockers: [] as number[],
    asked: 0,
    tellFails: false,
    askFails: false,
    writing: Promise.resolve(),
  }
  const told: (readonly string[])[] = []
  const failed: unknown[] = []
  const telling = createProblemReporter<string>({
    waitsLong: () => state.waitsLong,
    async readBlockers() {
      state.asked += 1
      if (state.askFails) throw new Error('no right to look')
      return state.blockers
    },
    problems: (blockers) => [`blocked by ${blockers}`],
    async tell(problems) {
      if (problems.length > 0) await state.writing
      if (state.tellFails) throw new Error('the database is away')
      told.push(problems)
    },
    onFailed: (error) => failed.push(error),
  })
  return { ...telling, state, told, failed }
}

test('who holds up an outcome is looked for only while one waits long', async () => {
  const { runOnce, state, told } = setup()
  await runOnce()
  expect(state.asked).toBe(0)
  Object.assign(state, { waitsLong: true, blockers: [4711] })
  await runOnce()
  expect(told).toEqual([['blocked by '], ['blocked by 4711']])
})

test('whoever was seen is told until the outcome is written: in between nobody seems to hold the lock', async () => {
  const { runOnce, state, told } = setup()
  Object.assign(state, { waitsLong: true, blockers: [4711] })
  await runOnce()
  state.blockers = []
  await runOnce()
  state.askFails = true
  await runOnce()
  state.waitsLong = false
  await runOnce()
  expect(told.flat()).toEqual(['blocked by 4711', 'blocked by 4711', 'blocked by 4711', 'blocked by '])
})

test('what could not be told is said, and thrown at nobody', async () => {
  const { runOnce, clear, state, failed } = setup()
  state.tellFails = true
  await runOnce()
  await clear()
  expect(failed).toHaveLength(2)
})

test('an instance that leaves has no problem any more', async () => {
  const { clear, told } = setup()
  await clear()
  expect(told).toEqual([[]])
})

test('a round that is still being written when the instance leaves does not bring its problems back', async () => {
  const { runOnce, clear, state, told } = setup()
  const writing = Promise.withResolvers<void>()
  state.writing = writing.promise
  const round = runOnce()
  const leaving = clear()
  writing.resolve()
  await Promise.all([round, leaving])
  expect(told.at(-1)).toEqual([])
})
