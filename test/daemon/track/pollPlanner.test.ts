import { expect, test } from 'vitest'
import { createPollPlanner } from '../../../src/daemon/track/pollPlanner.ts'
import type { Resource } from '../../../src/resources.ts'

const windowMs = 60_000
const seen = { capacity: 100, submissionsWaiting: 0, submissionsSent: 0, nowMs: 0 }
const idle = { ...seen, accepted: 1 }
/** Room for two polls a record. */
const busy = { ...seen, accepted: 45 }
const scarce = { ...seen, submissionsWaiting: 500, accepted: 50 }

/** 300 transactions that took about `ms`, each observed within a fifth of that. */
const took = (resource: Resource, ms: number) =>
  Array.from({ length: 300 }, (_, i) => ({
    resource,
    afterMs: ms * (0.8 + (i % 10) / 100),
    untilMs: ms * (1 + (i % 10) / 100),
  }))

const planner = () => createPollPlanner(windowMs, 100, () => 0.5)

test('before anything is learned, the first poll comes within the window', () => {
  const first = planner().nextPollDelayMs('data', 0)
  expect(first).toBeGreaterThan(0)
  expect(first).toBeLessThan(windowMs)
})

test('the first poll comes when the transaction is likely to be done', () => {
  const plan = planner()
  plan.learn(took('data', 20_000))
  plan.updatePressure(busy)
  const first = plan.nextPollDelayMs('data', 0)
  expect(first).toBeGreaterThan(15_000)
  expect(first).toBeLessThan(30_000)
})

test('the processing times of data and orders are learned separately', () => {
  const plan = planner()
  plan.learn([...took('data', 2_000), ...took('orders', 40_000)])
  plan.updatePressure(busy)
  expect(plan.nextPollDelayMs('data', 0)).toBeLessThan(5_000)
  expect(plan.nextPollDelayMs('orders', 0)).toBeGreaterThan(30_000)
})

test('polls come later if slots are short than if they are idle', () => {
  const plan = planner()
  plan.learn(took('data', 20_000))
  plan.updatePressure(scarce)
  const late = plan.nextPollDelayMs('data', 0)
  plan.updatePressure(idle)
  expect(plan.nextPollDelayMs('data', 0)).toBeLessThan(late)
})

test('new processing times replace those learned before', () => {
  const plan = planner()
  plan.updatePressure(busy)
  plan.learn(took('data', 40_000))
  plan.learn(took('data', 2_000))
  expect(plan.nextPollDelayMs('data', 0)).toBeLessThan(5_000)
})

test('each plan takes a fresh random number', () => {
  let calls = 0
  const plan = createPollPlanner(windowMs, 100, () => ++calls / 10)
  plan.nextPollDelayMs('data', 0)
  plan.nextPollDelayMs('data', 0)
  expect(calls).toBe(2)
})

test('a burst after an idle time is polled when it is done (it was left alone for minutes)', () => {
  const plan = planner()
  plan.learn(took('data', 2_000)) // in idle times each was polled early and seen pending
  plan.updatePressure(scarce)
  expect(plan.nextPollDelayMs('data', 0)).toBeLessThan(3_000)
})
