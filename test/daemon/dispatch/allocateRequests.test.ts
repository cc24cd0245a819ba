import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  allocateRequests,
  type BudgetDemand,
  initialAllocationBalance,
} from '../../../src/daemon/dispatch/planRound.ts'

const WINDOW_MS = 60_000

function waiting(over: Partial<BudgetDemand>): BudgetDemand {
  const limit = over.limit ?? 100
  return {
    nowMs: 0,
    windowMs: WINDOW_MS,
    limit,
    free: limit,
    inFlightRoom: limit,
    submissionsReady: 0,
    pollsDue: 0,
    rarePollsDue: 0,
    oldestPollOverdueMs: 0,
    balance: initialAllocationBalance(limit, 0),
    ...over,
  }
}

/** Plays `count` requests that become free one at a time, each `stepMs` after the one before. */
function oneByOne(
  count: number,
  over: Partial<BudgetDemand>,
  stepMs = 500,
): { submissions: number; polls: number; longestMs: number } {
  let balance = initialAllocationBalance(over.limit ?? 100, 0)
  let [submissions, polls] = [0, 0]
  const lastMs = { submission: 0, poll: 0 }
  let longestMs = 0
  for (let nowMs = 0; nowMs < count * stepMs; nowMs += stepMs) {
    const spending = allocateRequests(waiting({ ...over, nowMs, free: 1, inFlightRoom: 1, balance }))
    balance = spending.balance
    submissions += spending.submissions
    polls += spending.polls
    if (spending.submissions > 0) lastMs.submission = nowMs
    if (spending.polls > 0) lastMs.poll = nowMs
    longestMs = Math.max(longestMs, nowMs - lastMs.submission, nowMs - lastMs.poll)
  }
  return { submissions, polls, longestMs }
}

test('free requests, room in flight and waiting requests are never exceeded, and all numbers are whole', () => {
  const anyCount = fc.integer({ min: 0, max: 12_000 })
  fc.assert(
    fc.property(
      fc.record({
        nowMs: fc.double({ min: 0, max: 1e9, noNaN: true }),
        windowMs: fc.integer({ min: 100, max: 600_000 }),
        limit: fc.integer({ min: 1, max: 10_000 }),
        free: fc.integer({ min: -3, max: 10_000 }),
        inFlightRoom: fc.integer({ min: -3, max: 64 }),
        submissionsReady: anyCount,
        pollsDue: anyCount,
        rarePollsDue: anyCount,
        oldestPollOverdueMs: fc.double({ min: 0, max: 1e7, noNaN: true }),
        balance: fc.record({
          owedToPolls: fc.double({ min: 0, max: 1, noNaN: true }),
          submissionsAllowed: fc.double({ min: 0, max: 500, noNaN: true }),
          rarePollsAllowed: fc.double({ min: 0, max: 500, noNaN: true }),
          atMs: fc.double({ min: 0, max: 1e9, noNaN: true }),
        }),
      }),
      (state) => {
        const { submissions, polls, rarePolls, againInMs, balance } = allocateRequests(state)
        expect(Number.isInteger(submissions) && Number.isInteger(polls)).toBe(true)
        expect(submissions).toBeGreaterThanOrEqual(0)
        expect(polls).toBeGreaterThanOrEqual(0)
        expect(Number.isInteger(rarePolls)).toBe(true)
        expect(rarePolls).toBeGreaterThanOrEqual(0)
        expect(rarePolls).toBeLessThanOrEqual(state.rarePollsDue)
        expect(submissions + polls + rarePolls).toBeLessThanOrEqual(
          Math.max(0, Math.min(state.free, state.inFlightRoom)),
        )
        expect(submissions).toBeLessThanOrEqual(state.submissionsReady)
        expect(polls).toBeLessThanOrEqual(state.pollsDue)
        expect(balance.owedToPolls).toBeGreaterThanOrEqual(0)
        expect(balance.owedToPolls).toBeLessThanOrEqual(1)
        expect(balance.submissionsAllowed).toBeGreaterThanOrEqual(0)
        if (againInMs !== undefined) {
          expect(againInMs).toBeGreaterThanOrEqual(1)
          expect(againInMs).toBeLessThanOrEqual(state.windowMs * 2)
        }
      },
    ),
    { numRuns: 1_000 },
  )
})

test('with one free request at a time, neither submissions nor polls wait for more than three', () => {
  const { submissions, polls, longestMs } = oneByOne(300, { submissionsReady: 1_000, pollsDue: 1_000 })
  expect(submissions + polls).toBe(300)
  expect(polls).toBeGreaterThanOrEqual(178)
  expect(polls).toBeLessThanOrEqual(182)
  expect(longestMs).toBeLessThanOrEqual(3 * 500)
})

test('polls earn no requests while none is due, so a submission is first after that', () => {
  const { balance } = allocateRequests(waiting({ submissionsReady: 1, free: 5 }))
  const both = waiting({ submissionsReady: 10, pollsDue: 10, free: 1, balance })
  expect(allocateRequests(both)).toMatchObject({ submissions: 1, polls: 0 })
})

test('after an outage with 10,000 overdue polls new submissions are still sent', () => {
  const outage = { submissionsReady: 500, pollsDue: 10_000, oldestPollOverdueMs: 3_600_000 }
  expect(oneByOne(100, outage).submissions).toBeGreaterThanOrEqual(35)
})

test('polls leave a tenth of the limit free for the next submission', () => {
  expect(allocateRequests(waiting({ pollsDue: 500 }))).toMatchObject({ submissions: 0, polls: 90 })
  expect(allocateRequests(waiting({ pollsDue: 500, free: 10 }))).toMatchObject({ polls: 0 })
  expect(allocateRequests(waiting({ pollsDue: 500, submissionsReady: 1, free: 40 }))).toMatchObject({
    submissions: 1,
    polls: 29,
  })
})

test('polls that are overdue by a sixth of the window may take every free request', () => {
  expect(allocateRequests(waiting({ pollsDue: 500, oldestPollOverdueMs: WINDOW_MS / 6 }))).toMatchObject({ polls: 100 })
  expect(allocateRequests(waiting({ pollsDue: 500, oldestPollOverdueMs: WINDOW_MS / 12 }))).toMatchObject({ polls: 95 })
})

test('a limit of one request still sends both submissions and polls', () => {
  const { submissions, polls } = oneByOne(50, { limit: 1, submissionsReady: 10, pollsDue: 10 }, WINDOW_MS)
  expect(submissions).toBeGreaterThanOrEqual(19)
  expect(polls).toBeGreaterThanOrEqual(29)
})

test('a few records are sent at once; a backlog is paced, with the time of the next look', () => {
  expect(allocateRequests(waiting({ submissionsReady: 50 }))).toMatchObject({ submissions: 50, againInMs: undefined })
  const backlog = allocateRequests(waiting({ submissionsReady: 500 }))
  expect(backlog.submissions).toBe(5)
  expect(backlog.againInMs).toBeGreaterThan(0)
  const again = allocateRequests(
    waiting({ submissionsReady: 495, free: 95, nowMs: backlog.againInMs ?? 0, balance: backlog.balance }),
  )
  expect(again.submissions).toBe(1)
})

test('the next look comes when the next submission may leave, not before, also if polls took requests', () => {
  const first = allocateRequests(waiting({ submissionsReady: 500, pollsDue: 20 }))
  expect(first).toMatchObject({ submissions: 5, polls: 20 })
  const againInMs = first.againInMs ?? 0
  const submissionsAt = (nowMs: number) =>
    allocateRequests(waiting({ submissionsReady: 495, free: 75, nowMs, balance: first.balance })).submissions
  expect([submissionsAt(againInMs - 1), submissionsAt(againInMs)]).toEqual([0, 1])
})

test('no next look is planned if the room in flight holds submissions back', () => {
  const full = { submissionsReady: 500, inFlightRoom: 3 }
  expect(allocateRequests(waiting(full))).toMatchObject({ submissions: 3, againInMs: undefined })
  expect(allocateRequests(waiting({ ...full, pollsDue: 10 }))).toMatchObject({
    submissions: 2,
    polls: 1,
    againInMs: undefined,
  })
})

test('the pace is seven tenths of the limit a window, and faster the more requests are free', () => {
  const spent = { ...initialAllocationBalance(100, 0), submissionsAllowed: 0 }
  const nextMs = (free: number) => allocateRequests(waiting({ submissionsReady: 500, free, balance: spent })).againInMs
  expect(nextMs(1)).toBeCloseTo(WINDOW_MS / (70 + 3))
  expect(nextMs(50)).toBeCloseTo(WINDOW_MS / (70 + 150))
})

test('pacing sends a backlog at half the limit or more in each window', () => {
  let [balance, sent] = [initialAllocationBalance(100, 0), 0]
  for (let nowMs = 0; nowMs < WINDOW_MS; nowMs += 100) {
    const spending = allocateRequests(waiting({ submissionsReady: 500, free: 1, nowMs, balance }))
    balance = spending.balance
    sent += spending.submissions
  }
  expect(sent).toBeGreaterThan(60)
})

describe('polls of stuck transactions', () => {
  /** Plays requests that become free one at a time, as under load. */
  function play(count: number, over: Partial<BudgetDemand>) {
    let balance = initialAllocationBalance(100, 0)
    const spent = { submissions: 0, polls: 0, rarePolls: 0 }
    for (let i = 0; i < count; i++) {
      const spending = allocateRequests(waiting({ ...over, nowMs: i * 600, free: 1, inFlightRoom: 1, balance }))
      balance = spending.balance
      for (const kind of ['submissions', 'polls', 'rarePolls'] as const) spent[kind] += spending[kind]
    }
    return spent
  }

  test('take a twentieth of the limit, whatever else waits', () => {
    const many = { rarePollsDue: 1_000, submissionsReady: 1_000, pollsDue: 1_000 }
    const { submissions, polls, rarePolls } = play(1_000, many)
    expect(rarePolls).toBeGreaterThan(45)
    expect(rarePolls).toBeLessThan(53)
    expect(submissions).toBeGreaterThan(350)
    expect(polls).toBeGreaterThan(540)
  })

  test('take more only if nothing else waits and half of the limit is free', () => {
    const balance = { ...initialAllocationBalance(100, 0), rarePollsAllowed: 0 }
    const idle = { rarePollsDue: 1_000, inFlightRoom: 8, balance }
    expect(allocateRequests(waiting({ ...idle, free: 100 })).rarePolls).toBe(8)
    expect(allocateRequests(waiting({ ...idle, free: 53 })).rarePolls).toBe(3)
    expect(allocateRequests(waiting({ ...idle, free: 50 })).rarePolls).toBe(0)
    expect(allocateRequests(waiting({ ...idle, free: 100, submissionsReady: 1 })).rarePolls).toBe(0)
    expect(allocateRequests(waiting({ ...idle, free: 100, submissionsReady: 1, pollsDue: 1 })).rarePolls).toBe(0)
  })

  test('are sent also if a twentieth of the limit is less than one request', () => {
    expect(allocateRequests(waiting({ limit: 10, rarePollsDue: 5, submissionsReady: 20 })).rarePolls).toBe(1)
  })
})
