import { expect, test } from 'vitest'
import { ProblemReporter } from '../../src/daemon/heartbeat.ts'
import type { InstanceProblem } from '../../src/ledger/instances.ts'

function setup() {
  const state = { tellFails: false, writing: Promise.resolve() }
  const told: (readonly InstanceProblem[])[] = []
  const failed: string[] = []
  class TestReporter extends ProblemReporter {
    protected override async replace(problems: readonly InstanceProblem[]) {
      if (problems.length > 0) await state.writing
      if (state.tellFails) throw new Error('the database is away')
      told.push(problems)
    }
  }
  const reporter = new TestReporter(
    {
      clock: { nowMs: () => 0 },
      log: { warn: (event) => void failed.push(event) },
      health: { failing: () => [{ loop: 'prune', error: new Error('a problem') }] },
      credentials: { broken: () => null },
      host: { fault: () => null },
      databases: { differences: '' } as never,
    },
    {
      heartbeat: { clockLeadMs: 0 },
      dispatch: { lostClaims: () => [], lateRequests: () => 0 },
      outcomes: { unwritten: () => [] },
    },
  )
  return { reporter, state, told, failed }
}

test('a problem that cannot be written is reported as a failure, and not thrown', async () => {
  const { reporter, state, failed } = setup()
  state.tellFails = true
  await reporter.runOnce()
  await reporter.clear()
  expect(failed).toHaveLength(2)
})

test('an instance that stops clears its problems', async () => {
  const { reporter, told } = setup()
  await reporter.clear()
  expect(told).toEqual([[]])
})

test('a round that is still writing when the instance stops does not bring its problems back', async () => {
  const { reporter, state, told } = setup()
  const writing = Promise.withResolvers<void>()
  state.writing = writing.promise
  const round = reporter.runOnce()
  const leaving = reporter.clear()
  writing.resolve()
  await Promise.all([round, leaving])
  expect(told.at(-1)).toEqual([])
})
