import { expect, test } from 'vitest'
import { createProblemReporter } from '../../src/daemon/heartbeat.ts'

function setup() {
  const state = { tellFails: false, writing: Promise.resolve() }
  const told: (readonly string[])[] = []
  const failed: unknown[] = []
  const telling = createProblemReporter<string>({
    problems: () => ['a problem'],
    async replaceProblems(problems) {
      if (problems.length > 0) await state.writing
      if (state.tellFails) throw new Error('the database is away')
      told.push(problems)
    },
    onFailed: (error) => failed.push(error),
  })
  return { ...telling, state, told, failed }
}

test('a problem that cannot be written is reported as a failure, and not thrown', async () => {
  const { runOnce, clear, state, failed } = setup()
  state.tellFails = true
  await runOnce()
  await clear()
  expect(failed).toHaveLength(2)
})

test('an instance that stops clears its problems', async () => {
  const { clear, told } = setup()
  await clear()
  expect(told).toEqual([[]])
})

test('a round that is still writing when the instance stops does not bring its problems back', async () => {
  const { runOnce, clear, state, told } = setup()
  const writing = Promise.withResolvers<void>()
  state.writing = writing.promise
  const round = runOnce()
  const leaving = clear()
  writing.resolve()
  await Promise.all([round, leaving])
  expect(told.at(-1)).toEqual([])
})
