import { expect, test } from 'vitest'
import { createInflowAverage } from '../../../src/daemon/track/pollPlanner.ts'

const windowMs = 60_000
const calm = { capacity: 100, submissionsSent: 0, submissionsWaiting: 0 }

test('a steady inflow is known after some windows', () => {
  const { perWindow } = createInflowAverage(windowMs)
  let seen = 0
  for (let minute = 0; minute <= 30; minute++)
    seen = perWindow({ ...calm, submissionsSent: 40, nowMs: minute * windowMs })
  expect(seen).toBeGreaterThan(39)
})

test('a single batch of a thousand counts little, and less in each later window', () => {
  const { perWindow } = createInflowAverage(windowMs)
  perWindow({ ...calm, nowMs: 0 })
  const after = perWindow({ ...calm, submissionsSent: 60, submissionsWaiting: 940, nowMs: windowMs })
  expect(after).toBeLessThan(10)
  expect(perWindow({ ...calm, submissionsSent: 50, submissionsWaiting: 890, nowMs: 2 * windowMs })).toBeLessThan(after)
})

test('a growing backlog counts as inflow, even if no more is sent', () => {
  const { perWindow } = createInflowAverage(windowMs)
  let seen = 0
  for (let minute = 0; minute <= 30; minute++)
    seen = perWindow({ ...calm, submissionsSent: 30, submissionsWaiting: 15 * minute, nowMs: minute * windowMs })
  expect(seen).toBeGreaterThan(44)
})

test('several looks within a window change nothing', () => {
  const { perWindow } = createInflowAverage(windowMs)
  perWindow({ ...calm, nowMs: 0 })
  expect(perWindow({ ...calm, submissionsSent: 50, nowMs: windowMs - 1 })).toBe(0)
})
