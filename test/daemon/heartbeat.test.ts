import { expect, test } from 'vitest'
import { createHeartbeat, findInstanceProblems } from '../../src/daemon/heartbeat.ts'
import { heartbeatSilenceMaxMs } from '../../src/ledger/instances.ts'

function setup() {
  const state = { nowMs: 0, takesMs: 0, fails: false, reloadAsked: null as number | null, reading: Promise.resolve() }
  const asked: number[] = []
  const heartbeat = createHeartbeat({
    clock: {
      stopwatch() {
        const startMs = state.nowMs
        return () => state.nowMs - startMs
      },
    },
    async beat() {
      state.nowMs += state.takesMs
      if (state.fails) throw new Error('the database is away')
      return state.reloadAsked
    },
    async answerReload(number) {
      asked.push(number)
      await state.reading
    },
  })
  return { heartbeat, state, asked }
}

test('before its first sign of life an instance may not claim', async () => {
  const { heartbeat, state } = setup()
  expect(heartbeat.mayClaim()).toBe(false)
  state.fails = true
  await heartbeat.runOnce().catch(() => {})
  expect(heartbeat.mayClaim()).toBe(false)
})

test('it may as long as its last sign of life began less than 8 s ago, which is well before others call it dead', async () => {
  const { heartbeat, state } = setup()
  state.takesMs = 3_000
  expect(await heartbeat.runOnce()).toBe(3_000)
  state.nowMs = 7_999
  expect(heartbeat.mayClaim()).toBe(true)
  state.nowMs = 8_000
  expect(heartbeat.mayClaim()).toBe(false)
  expect(heartbeatSilenceMaxMs - 8_000).toBeGreaterThanOrEqual(4_000)
})

test('what it claimed before a gap of 8 s it may not send after the next beat; after one lost beat it may', async () => {
  const { heartbeat, state } = setup()
  await heartbeat.runOnce()
  const maySend = heartbeat.watchHeartbeat()
  state.nowMs = 7_999
  await heartbeat.runOnce()
  expect(maySend()).toBe(true)
  state.nowMs += 8_000
  await heartbeat.runOnce()
  expect([maySend(), heartbeat.mayClaim(), heartbeat.watchHeartbeat()()]).toEqual([false, true, true])
})

test('it rescues records of others only after 12 s without a gap of 6 s: after an outage they have not written yet', async () => {
  const { heartbeat, state } = setup()
  const beat = async (afterMs: number) => {
    state.nowMs += afterMs
    await heartbeat.runOnce()
  }
  await beat(0)
  for (let beats = 0; beats < 4; beats += 1) {
    expect(heartbeat.mayRescue()).toBe(false)
    await beat(3_001)
  }
  expect(heartbeat.mayRescue()).toBe(true)
  await beat(6_001)
  expect(heartbeat.mayRescue()).toBe(false)
})

test('a beat that fails does not count, and one that is lost leaves no gap', async () => {
  const { heartbeat, state } = setup()
  await heartbeat.runOnce()
  state.nowMs += 3_000
  state.takesMs = 3_000
  state.fails = true
  await heartbeat.runOnce().catch(() => {})
  state.nowMs += 250
  state.fails = false
  state.takesMs = 1
  expect(heartbeat.mayClaim()).toBe(true)
  await heartbeat.runOnce()
  state.nowMs += 7_000
  expect(heartbeat.mayClaim()).toBe(true)
})

test('a reload that was asked for is told with each beat until it is answered', async () => {
  const { heartbeat, state, asked } = setup()
  await heartbeat.runOnce()
  state.reloadAsked = 2
  await heartbeat.runOnce()
  await heartbeat.runOnce()
  state.reloadAsked = null
  await heartbeat.runOnce()
  expect(asked).toEqual([2, 2])
})

test('while the files are read for one question, another waits until it is asked again', async () => {
  const { heartbeat, state, asked } = setup()
  const reading = Promise.withResolvers<void>()
  Object.assign(state, { reading: reading.promise, reloadAsked: 1 })
  await heartbeat.runOnce()
  state.reloadAsked = 2
  await heartbeat.runOnce()
  expect(asked).toEqual([1])
  reading.resolve()
  await reading.promise
  await heartbeat.runOnce()
  expect(asked).toEqual([1, 2])
})

test('five permits in a row that ran out are a problem, four may be chance', () => {
  const kinds = (lapsedPermits: number) =>
    findInstanceProblems(
      { failing: [], lostClaims: [], lapsedPermits, unwritten: [], brokenFiles: null, brokenCredentials: null },
      0,
    ).map(({ kind }) => kind)
  expect([kinds(4), kinds(5)]).toEqual([[], ['budget_starved']])
})
