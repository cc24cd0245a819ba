import { expect, test } from 'vitest'
import { createReloadResponder } from '../../src/daemon/heartbeat.ts'

function setup() {
  const reading = Promise.withResolvers<string | null>()
  const answers: { asked: number; problem: string | null }[] = []
  const failures: unknown[] = []
  const state = { fails: false, reads: 0 }
  const part = createReloadResponder({
    reload() {
      state.reads += 1
      return state.reads === 1 ? reading.promise : Promise.resolve('a mapping is broken')
    },
    async answer(answer) {
      if (state.fails) throw new Error('the database is away')
      answers.push(answer)
    },
    onFailed: (error) => failures.push(error),
  })
  return { part, reading, answers, failures, state }
}

test('while the files are read for one question, another waits until it is asked again', async () => {
  const { part, reading, answers, state } = setup()
  const first = part(1)
  await part(1)
  await part(2)
  expect(state.reads).toBe(1)
  reading.resolve(null)
  await first
  await part(2)
  expect(answers).toEqual([
    { asked: 1, problem: null },
    { asked: 2, problem: 'a mapping is broken' },
  ])
})

test('an answer that cannot be written is said, and the question that comes again is answered', async () => {
  const { part, reading, answers, failures, state } = setup()
  reading.resolve(null)
  state.fails = true
  await part(1)
  expect([answers, failures]).toEqual([[], [new Error('the database is away')]])
  state.fails = false
  await part(1)
  expect(answers).toEqual([{ asked: 1, problem: 'a mapping is broken' }])
})
