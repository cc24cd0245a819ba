import { afterEach, expect, test, vi } from 'vitest'
import { createWakeup, type Loop, startLoop } from '../../src/daemon/loop.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** A loop whose rounds end when the test says so, with fake timers. */
function setup() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const rounds: { end(waitMs: number): void; fail(error: Error): void }[] = []
  const told: string[] = []
  const wakeup = createWakeup()
  const loop: Loop = startLoop({
    part: {
      runOnce: () =>
        new Promise((resolve, reject) => {
          rounds.push({ end: resolve, fail: reject })
        }),
    },
    wakeup,
    onSucceeded: () => told.push('succeeded'),
    onFailed: (error) => told.push((error as Error).message),
    backoffMaxMs: 10_000,
  })
  /** Lets everything that is ready happen. */
  const settle = async () => {
    for (let i = 0; i < 5; i++) await new Promise(setImmediate)
  }
  return {
    loop,
    wake: wakeup.wake,
    rounds,
    told,
    settle,
    async end(waitMs: number) {
      rounds.at(-1)?.end(waitMs)
      await settle()
    },
    async fail(message: string) {
      rounds.at(-1)?.fail(new Error(message))
      await settle()
    },
    async pass(ms: number) {
      vi.advanceTimersByTime(ms)
      await settle()
    },
  }
}

test('the next round follows after the time that a round returns', async () => {
  const { loop, rounds, end, pass, told } = setup()
  await end(1_000)
  expect(told).toEqual(['succeeded'])
  await pass(999)
  expect(rounds).toHaveLength(1)
  await pass(1)
  expect(rounds).toHaveLength(2)
  void loop.stop()
  await end(0)
})

test('a round that returns 0 is followed at once, after other work had its turn', async () => {
  const { loop, rounds, end } = setup()
  await end(0)
  await end(0)
  expect(rounds).toHaveLength(3)
  void loop.stop()
  await end(0)
  expect(rounds).toHaveLength(3)
})

test('a wake ends the wait; several during a round count as one', async () => {
  const { loop, wake, rounds, end, settle } = setup()
  await end(60_000)
  wake()
  await settle()
  expect(rounds).toHaveLength(2)
  wake()
  wake()
  await settle()
  expect(rounds).toHaveLength(2)
  await end(60_000)
  expect(rounds).toHaveLength(3)
  await end(60_000)
  expect(rounds).toHaveLength(3)
  await loop.stop()
})

test('a failed round is reported and followed after 250 ms, doubling to 10 s; a success resets that', async () => {
  const { loop, rounds, fail, end, pass, told } = setup()
  for (const waitMs of [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]) {
    const before = rounds.length
    await fail('broken')
    await pass(waitMs - 1)
    expect(rounds).toHaveLength(before)
    await pass(1)
    expect(rounds).toHaveLength(before + 1)
  }
  expect(new Set(told)).toEqual(new Set(['broken']))
  await end(0)
  await fail('again')
  const before = rounds.length
  await pass(250)
  expect(rounds).toHaveLength(before + 1)
  void loop.stop()
  await end(0)
})

test('a wake does not shorten the wait after a failure', async () => {
  const { loop, wake, rounds, fail, pass, settle } = setup()
  wake()
  await fail('broken')
  wake()
  await settle()
  expect(rounds).toHaveLength(1)
  await pass(250)
  expect(rounds).toHaveLength(2)
  void loop.stop()
  await fail('broken')
})

test('stopping lets the current round finish, and starts no other', async () => {
  const { loop, wake, rounds, end, settle } = setup()
  let stopped = false
  const stopping = loop.stop().then(() => {
    stopped = true
  })
  await settle()
  expect(stopped).toBe(false)
  await end(60_000)
  await stopping
  wake()
  await settle()
  expect(rounds).toHaveLength(1)
})

test('stopping ends the wait, even after a failure', async () => {
  const first = setup()
  await first.end(60_000)
  await first.loop.stop()
  const second = setup()
  await second.fail('broken')
  await second.loop.stop()
  expect([first.rounds.length, second.rounds.length]).toEqual([1, 1])
})
