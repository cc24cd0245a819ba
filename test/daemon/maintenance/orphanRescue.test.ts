import { expect, test } from 'vitest'
import { createOrphanRescue } from '../../../src/daemon/maintenance/orphanRescue.ts'
import { asChange } from '../../support/change.ts'
import { submission } from '../../support/submission.ts'

function setup(jumpMs: number) {
  const calls: string[] = []
  const rescue = createOrphanRescue({
    async lookAtClock() {
      calls.push('look at the clock')
      return { jumpMs }
    },
    onClockJump: (ms) => calls.push(`jumped ${ms}`),
    async readOrphaned() {
      calls.push('read')
      return [submission()]
    },
    readForgotten: async () => [],
    interpretAnswer: (_, answer) => ({
      step: { change: asChange({ state: 'uncertain' }), cause: 'in doubt', pause: null },
      answer,
      breach: null,
    }),
    blameFor: () => 'everyone' as const,
    writeSteps: async (transitions) => [...transitions],
    onRescued: (count) => calls.push(`rescued ${count}`),
  })
  return { ...rescue, calls }
}

test('the clock is looked at before anybody is judged by it', async () => {
  const { runOnce, calls } = setup(0)
  expect(await runOnce()).toBe(3_000)
  expect(calls).toEqual(['look at the clock', 'read', 'rescued 1'])
})

test('a clock that jumped is told', async () => {
  const { runOnce, calls } = setup(-60_000)
  await runOnce()
  expect(calls).toContain('jumped -60000')
})
