import { expect, test } from 'vitest'
import type { DaemonContext } from '../../src/daemon/context.ts'
import { InstanceProblems } from '../../src/daemon/instanceProblems.ts'

function setup() {
  const state = { nowMs: 0, isFailing: false, lateRequests: 0, clockLeadMs: 0 }
  const problems = new InstanceProblems(
    {
      clock: {
        nowMs: () => state.nowMs,
        stopwatch() {
          const startMs = state.nowMs
          return () => state.nowMs - startMs
        },
      },
      health: { failing: () => (state.isFailing ? [{ loop: 'capture', error: new Error('no room') }] : []) },
      credentials: { broken: () => null },
      host: { fault: () => null },
      log: { fault: () => null },
      databases: { differences: '', instance: { host: 'erp-1' } },
    } as unknown as DaemonContext,
    {
      heartbeat: {
        get clockLeadMs() {
          return state.clockLeadMs
        },
      },
      dispatch: { lostClaims: () => [], lateRequests: () => state.lateRequests },
      outcomes: { unwritten: () => [] },
    },
  )
  return { state, problems }
}

test('five requests in a row that left too late are a problem, four are not', () => {
  const { state, problems } = setup()
  state.lateRequests = 4
  expect(problems.find()).toEqual([])
  state.lateRequests = 5
  expect(problems.find().map(({ kind }) => kind)).toEqual(['budget_starved'])
})

test('a clock that is off is a problem, with its side', () => {
  const { state, problems } = setup()
  state.clockLeadMs = -90_000
  const detail = 'the clock of erp-1 is 90 s behind the database’s'
  expect(problems.find()).toEqual([{ kind: 'clock_off', part: 'clock', detail, ageMs: 0 }])
})

test('a problem keeps its age while it stands, and begins anew when it comes back', () => {
  const { state, problems } = setup()
  const ages = () => problems.find().map(({ kind, part, ageMs }) => [kind, part, ageMs])
  state.isFailing = true
  expect(ages()).toEqual([['loop_failing', 'capture', 0]])
  state.nowMs = 5_000
  expect(ages()).toEqual([['loop_failing', 'capture', 5_000]])
  state.isFailing = false
  expect(ages()).toEqual([])
  state.isFailing = true
  expect(ages()).toEqual([['loop_failing', 'capture', 0]])
})
