import { expect, test, vi } from 'vitest'
import { SleepFlagKeeper } from '../../../src/daemon/capture/sleep.ts'
import type { Outbox } from '../../../src/outbox/outbox.ts'
import { eventually } from '../../support/eventually.ts'

type Mark = 'marked' | 'another' | 'writers' | 'unavailable'

function setup(...answers: Mark[]) {
  const state = { isMarked: false, hasNew: false, asked: 0, elapsedMs: 1_000 }
  const wake = vi.fn()
  const listener = {
    async setSleepFlag() {
      state.asked += 1
      const answer = answers.shift() ?? 'marked'
      state.isMarked ||= answer === 'marked'
      return answer
    },
    isSleepFlagSet: () => state.isMarked,
    clearSleepFlag() {
      state.isMarked = false
    },
  }
  const outbox = { queryTable: async () => state.hasNew } as unknown as Outbox
  const sleep = new SleepFlagKeeper({ listener, outbox }, { wake }, () => state.elapsedMs)
  return { state, sleep, wake }
}

test('after the sleep flag is set, capture looks once more and then sleeps', async () => {
  const { sleep, state, wake } = setup()
  await sleep.fallAsleep(0)
  await eventually(() => expect(wake).toHaveBeenCalledTimes(1))
  await sleep.fallAsleep(0)
  await sleep.fallAsleep(0)
  expect(wake).toHaveBeenCalledTimes(1)
  expect(state).toMatchObject({ isMarked: true, asked: 1 })
})

test('while transactions are open that will not notify, capture looks again and again', async () => {
  const { sleep, state, wake } = setup('writers', 'writers', 'marked')
  for (let rounds = 1; rounds <= 3; rounds++) {
    await sleep.fallAsleep(0)
    await eventually(() => expect(wake).toHaveBeenCalledTimes(rounds))
  }
  expect(state.isMarked).toBe(true)
})

test.each([
  'another',
  'unavailable',
] as const)('if the sleep flag is not set (%s), capture sleeps until the next sweep', async (answer) => {
  const { sleep, state, wake } = setup(answer)
  await sleep.fallAsleep(0)
  await new Promise(setImmediate)
  expect(wake).not.toHaveBeenCalled()
  expect(state.isMarked).toBe(false)
})

test('if rows follow each other quickly, the sleep flag is set at most every 25 ms, and capture looks again instead', async () => {
  const { sleep, state, wake } = setup()
  await sleep.fallAsleep(0)
  await eventually(() => expect(wake).toHaveBeenCalledTimes(1))
  state.isMarked = false // a notification cleared it
  state.elapsedMs += 5
  await sleep.fallAsleep(0)
  expect(state.asked).toBe(1)
  await eventually(() => expect(wake).toHaveBeenCalledTimes(2))
  state.elapsedMs += 30
  await sleep.fallAsleep(0)
  expect(state.asked).toBe(2)
})

test('after a round that took rows capture looks again, and sets the sleep flag only when none are left', async () => {
  const { sleep, state, wake } = setup()
  await sleep.fallAsleep(3)
  expect(state.asked).toBe(0)
  await eventually(() => expect(wake).toHaveBeenCalledTimes(1))
  await sleep.fallAsleep(0)
  expect(state.asked).toBe(1)
})

test('while rows must wait, or there is a backlog, the sleep flag is not set', async () => {
  const { sleep, state, wake } = setup()
  await sleep.fallAsleep(0)
  await eventually(() => expect(wake).toHaveBeenCalledTimes(1))
  state.hasNew = true
  await sleep.fallAsleep(0)
  await eventually(() => expect(wake).toHaveBeenCalledTimes(2)) // a row may have come in that moment
  await sleep.fallAsleep(0)
  await sleep.fallAsleep(0)
  expect(wake).toHaveBeenCalledTimes(2)
  expect(state).toMatchObject({ isMarked: false, asked: 1 })

  state.isMarked = true
  sleep.stayAwake()
  expect(state.isMarked).toBe(false)
})

test('the sleep flag is set once at a time, however often capture falls asleep', async () => {
  const { sleep, state } = setup()
  await Promise.all([sleep.fallAsleep(0), sleep.fallAsleep(0), sleep.fallAsleep(0)])
  expect(state.asked).toBe(1)
})
