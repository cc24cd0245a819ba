import { expect, test } from 'vitest'
import { computeClockLeadMs, Heartbeat } from '../../src/daemon/heartbeat.ts'
import { createWakeup } from '../../src/daemon/loop.ts'
import { type HeartbeatAnswer, heartbeatSilenceMaxMs, type InstanceProblem } from '../../src/ledger/instances.ts'

function setup() {
  const state = { nowMs: 0, takesMs: 0, fails: false, dbAheadMs: 0, isClockBack: false }
  const warnings: string[] = []
  class TestHeartbeat extends Heartbeat {
    protected override async write(): Promise<HeartbeatAnswer> {
      state.nowMs += state.takesMs
      if (state.fails) throw new Error('the database is away')
      const dbMs = state.nowMs + state.dbAheadMs
      return {
        beats: 1,
        history: null,
        hasOrphans: false,
        isClockBack: state.isClockBack,
        dbMs,
        hasLedgersSettings: true,
      }
    }
  }
  const heartbeat = new TestHeartbeat({
    clock: {
      nowMs: () => state.nowMs,
      stopwatch() {
        const startMs = state.nowMs
        return () => state.nowMs - startMs
      },
    },
    log: { warn: (event: string) => void warnings.push(event) },
    databases: { history: { note: () => false } },
    wakeups: { history: createWakeup(), orphans: createWakeup() },
  } as unknown as ConstructorParameters<typeof Heartbeat>[0])
  return { heartbeat, state, warnings }
}

test('an instance may not claim before its first heartbeat', async () => {
  const { heartbeat, state } = setup()
  expect(heartbeat.mayClaim()).toBe(false)
  state.fails = true
  await heartbeat.runOnce([]).catch(() => {})
  expect(heartbeat.mayClaim()).toBe(false)
})

test('an instance may claim for 3.5 s after its last heartbeat began, well before others count it as dead', async () => {
  const { heartbeat, state } = setup()
  state.takesMs = 2_000
  expect(await heartbeat.runOnce([])).toBe(1_000)
  state.nowMs = 3_499
  expect(heartbeat.mayClaim()).toBe(true)
  state.nowMs = 3_500
  expect(heartbeat.mayClaim()).toBe(false)
  expect(heartbeatSilenceMaxMs - 3_500).toBeGreaterThanOrEqual(1_500)
})

test('after a gap of 3.5 s an instance may not send what it had claimed before; after one lost heartbeat it may', async () => {
  const { heartbeat, state } = setup()
  await heartbeat.runOnce([])
  const maySend = heartbeat.watchHeartbeat()
  state.nowMs = 3_499
  await heartbeat.runOnce([])
  expect(maySend()).toBe(true)
  state.nowMs += 3_500
  await heartbeat.runOnce([])
  expect([maySend(), heartbeat.mayClaim(), heartbeat.watchHeartbeat()()]).toEqual([false, true, true])
})

test('a heartbeat that fails does not count, and one lost heartbeat does not stop claims', async () => {
  const { heartbeat, state } = setup()
  await heartbeat.runOnce([])
  state.nowMs += 1_000
  state.takesMs = 2_000
  state.fails = true
  await heartbeat.runOnce([]).catch(() => {})
  state.nowMs += 250
  state.fails = false
  state.takesMs = 1
  expect(heartbeat.mayClaim()).toBe(true)
  await heartbeat.runOnce([])
  state.nowMs += 3_000
  expect(heartbeat.mayClaim()).toBe(true)
})

test('a difference of more than 5 s between the clocks of host and database is known while it lasts', async () => {
  const { heartbeat, state } = setup()
  state.dbAheadMs = 90_000
  await heartbeat.runOnce([])
  expect(Math.round(heartbeat.clockLeadMs / 1_000)).toBe(-90)
  state.dbAheadMs = 4_000
  await heartbeat.runOnce([])
  expect(heartbeat.clockLeadMs).toBe(0)
})

test('a slow answer does not count as a difference between two clocks', () => {
  expect(computeClockLeadMs(1_000, 61_000, 2_000)).toBe(0)
  expect(computeClockLeadMs(1_000, 1_100, 7_000)).toBe(-5_900)
  expect(computeClockLeadMs(9_000, 69_000, 2_000)).toBe(7_000)
})

test('a database clock that was set back is told once, and stands until the times were moved', async () => {
  const { heartbeat, state, warnings } = setup()
  state.isClockBack = true
  await heartbeat.runOnce([])
  state.isClockBack = false
  await heartbeat.runOnce([])
  expect(heartbeat.isClockBack).toBe(true)
  expect(warnings).toEqual([expect.stringContaining('set back')])
})

test('a problem’s text that the database cannot hold does not stop the heartbeat', async () => {
  const written: (readonly InstanceProblem[])[] = []
  const heartbeats = {
    async query(_: string, values: string[]) {
      const problems = JSON.parse(values.at(-1) ?? '') as InstanceProblem[]
      written.push(problems)
      if (problems.some(({ detail }) => detail.includes('’'))) throw Object.assign(new Error('no'), { code: '22P05' })
      return { rows: [{ beats: 1, hasOrphans: false, isClockBack: false, dbMs: 0, hasLedger: false, ledger: null }] }
    },
  }
  const heartbeat = new Heartbeat({
    clock: { nowMs: () => 0, stopwatch: () => () => 0 },
    config: { service: null },
    log: { warn() {} },
    databases: {
      heartbeats,
      history: { lookFor: () => ({ beats: null, request: null }), note: () => false },
      instance: { id: 'i', version: '1', host: 'h', settings: {} },
    },
    wakeups: { history: createWakeup(), orphans: createWakeup() },
  } as unknown as ConstructorParameters<typeof Heartbeat>[0])
  await heartbeat.runOnce([{ kind: 'credentials_broken', part: 'credentials', detail: 'the file’s end', ageMs: 0 }])
  expect(heartbeat.mayClaim()).toBe(true)
  expect(written.at(-1)).toMatchObject([{ detail: 'the file?s end' }])
})
