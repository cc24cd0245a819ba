import { expect, test } from 'vitest'
import { createHeartbeat, findInstanceProblems } from '../../src/daemon/heartbeat.ts'
import { heartbeatSilenceMaxMs } from '../../src/ledger/instances.ts'

function setup() {
  const state = { nowMs: 0, takesMs: 0, fails: false }
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
    },
  })
  return { heartbeat, state }
}

test('an instance may not claim before its first heartbeat', async () => {
  const { heartbeat, state } = setup()
  expect(heartbeat.mayClaim()).toBe(false)
  state.fails = true
  await heartbeat.runOnce().catch(() => {})
  expect(heartbeat.mayClaim()).toBe(false)
})

test('an instance may claim for 3.5 s after its last heartbeat began, well before others count it as dead', async () => {
  const { heartbeat, state } = setup()
  state.takesMs = 2_000
  expect(await heartbeat.runOnce()).toBe(1_000)
  state.nowMs = 3_499
  expect(heartbeat.mayClaim()).toBe(true)
  state.nowMs = 3_500
  expect(heartbeat.mayClaim()).toBe(false)
  expect(heartbeatSilenceMaxMs - 3_500).toBeGreaterThanOrEqual(1_500)
})

test('after a gap of 3.5 s an instance may not send what it had claimed before; after one lost heartbeat it may', async () => {
  const { heartbeat, state } = setup()
  await heartbeat.runOnce()
  const maySend = heartbeat.watchHeartbeat()
  state.nowMs = 3_499
  await heartbeat.runOnce()
  expect(maySend()).toBe(true)
  state.nowMs += 3_500
  await heartbeat.runOnce()
  expect([maySend(), heartbeat.mayClaim(), heartbeat.watchHeartbeat()()]).toEqual([false, true, true])
})

test('an instance rescues records of others only after 5 s of heartbeats without a gap of 2.5 s', async () => {
  const { heartbeat, state } = setup()
  const beat = async (afterMs: number) => {
    state.nowMs += afterMs
    await heartbeat.runOnce()
  }
  await beat(0)
  for (let beats = 0; beats < 5; beats += 1) {
    expect(heartbeat.mayRescue()).toBe(false)
    await beat(1_001)
  }
  expect(heartbeat.mayRescue()).toBe(true)
  await beat(2_501)
  expect(heartbeat.mayRescue()).toBe(false)
})

test('a heartbeat that fails does not count, and one lost heartbeat does not stop claims', async () => {
  const { heartbeat, state } = setup()
  await heartbeat.runOnce()
  state.nowMs += 1_000
  state.takesMs = 2_000
  state.fails = true
  await heartbeat.runOnce().catch(() => {})
  state.nowMs += 250
  state.fails = false
  state.takesMs = 1
  expect(heartbeat.mayClaim()).toBe(true)
  await heartbeat.runOnce()
  state.nowMs += 3_000
  expect(heartbeat.mayClaim()).toBe(true)
})

test('five requests in a row that left too late are a problem, four are not', () => {
  const kinds = (lateRequests: number) =>
    findInstanceProblems(
      {
        failing: [],
        lostClaims: [],
        lateRequests,
        unwritten: [],
        differences: '',
        brokenCredentials: null,
        hostFault: null,
        logFault: null,
      },
      0,
    ).map(({ kind }) => kind)
  expect([kinds(4), kinds(5)]).toEqual([[], ['budget_starved']])
})
