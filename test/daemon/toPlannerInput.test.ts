import { expect, test } from 'vitest'
import { toPollPlannerInput } from '../../src/daemon/createDispatchPart.ts'
import type { RequestDemand } from '../../src/model/dispatch.ts'

const demand: RequestDemand = {
  submissionsReady: 0,
  pollsDue: 0,
  rarePollsDue: 0,
  pollOverdueMs: 0,
  limit: 100,
  free: 90,
  nextDueMs: null,
  nextFreeMs: null,
  pauses: [],
  breaker: null,
}
const waiting = (submissionsReady: number, captureWindow: number, outboxWaiting: number) =>
  toPollPlannerInput({ ...demand, submissionsReady }, { tracked: 7, submissionsSent: 4 }, captureWindow, outboxWaiting)
    .submissionsWaiting

test('rows in the outbox count if the ledger is full', () => {
  expect(waiting(1_000, 1_000, 5_000)).toBe(6_000)
  expect(waiting(40, 50, 5_000)).toBe(5_040)
})

test('rows that may have been captured since they were counted do not count twice', () => {
  expect(waiting(300, 1_000, 700)).toBe(300)
})

test('a capture window beyond what is counted can be full, too', () => {
  expect(waiting(1_000, 100_000, 5_000)).toBe(6_000)
})
