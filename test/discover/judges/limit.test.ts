import { describe, expect, test } from 'vitest'
import {
  inferBucket,
  inferLimitFromCounts,
  judgePerSecondLimit,
  judgeRateLimit,
  judgeRateWindow,
  type LimitMeasurement,
} from '../../../src/discover/judges/limit.ts'

/** Two counts give the limit, or it stays unknown. */

const count = (letIn: number, tokenRequests = 0, isLimitReached = true) => ({
  ...{ letIn, tokenRequests, isLimitReached },
  refill: null,
})
const between = (sent: number, refused: number) => ({ sent, refused, stayedInWindow: true })

test.each([
  ['two equal counts', [count(60), count(60)], between(4, 4), { limit: 60, isAgreed: true, isRefusalCounted: false }],
  ['429s that count', [count(60), count(56)], between(4, 4), { limit: 60, isAgreed: true, isRefusalCounted: true }],
  [
    'requests that were accepted between the counts',
    [count(100), count(97)],
    between(4, 1),
    { limit: 100, isAgreed: true, isRefusalCounted: false },
  ],
  ['a token that may count', [count(60, 1), count(60, 1)], between(4, 4), { limit: 60, isAgreed: false }],
  [
    'the smallest count of three, twice',
    [count(60), count(116), count(60)],
    between(4, 4),
    { limit: 60, isAgreed: true },
  ],
  [
    'two equal counts that took long, and a smaller one',
    [count(70), count(70), count(50)],
    between(4, 4),
    { limit: 50, isAgreed: false },
  ],
  [
    '429s that count, and a third count',
    [count(60), count(56), count(60)],
    between(4, 4),
    { isAgreed: true, isRefusalCounted: true },
  ],
  ['a window that ended in between', [count(87), count(60)], between(4, 4), { limit: 60, isAgreed: false }],
] as const)('the limit is inferred from %s', (_, counts, extraRequests, read) => {
  expect(inferLimitFromCounts({ counts, extraRequests })).toMatchObject(read)
})

test('429s that left the window before the next count ended do not show whether they count', () => {
  const left = { ...between(4, 4), stayedInWindow: false }
  expect(inferLimitFromCounts({ counts: [count(60), count(60)], extraRequests: left })).toMatchObject({
    limit: 60,
    isRefusalCounted: null,
  })
})

test('counts with refusals in between are not exact, because these may use the limit, too', () => {
  const refill = { letInBefore: 10, beforeMs: 900, letInAfter: 45, afterMs: 12_500, rounds: 5 }
  const counts = [count(55), count(55)].map((each) => ({ ...each, refill }))
  expect(inferLimitFromCounts({ counts, extraRequests: between(4, 4) })).toMatchObject({ limit: 55, isAgreed: false })
})

const configured = { requests: 100, windowMs: 60_000 }

test('if two counts differ, the limit is unknown, but the smaller count is set', () => {
  const counts = { counts: [count(87), count(60)], extraRequests: between(4, 4) }
  const finding = judgeRateLimit(counts, configured)
  expect(finding).toMatchObject({
    found: null,
    certainty: 'unknown',
    set: [{ variable: 'RATE_LIMIT_REQUESTS', value: '60' }],
  })
})

const counted = (...counts: LimitMeasurement['counts']) => ({ counts, extraRequests: between(4, 4) })

test('if nothing is free after a window, the window is longer, and no limit of 0 is set', () => {
  const counts = counted(count(60), count(0))
  expect(judgeRateWindow(counts, 60_000)).toMatchObject({ found: 'longer than 60 s', certainty: 'likely' })
  expect(judgeRateLimit(counts, configured)).toMatchObject({
    found: '60',
    certainty: 'likely',
    set: [{ value: '60' }],
  })
  expect(judgeRateWindow(counted(count(60), count(60)), 60_000)).toMatchObject({ found: 'up to 60 s' })
  const none = counted(count(0), count(0))
  expect(judgeRateWindow(none, 60_000)).toMatchObject({ found: 'longer than 60 s' })
  expect(judgeRateLimit(none, configured)).toMatchObject({ found: null, set: [] })
})

test('a limit that holds only if token requests do not count is set, but its finding is unknown', () => {
  const counts = counted(count(59, 1), count(59, 1))
  const finding = judgeRateLimit(counts, configured)
  expect(finding).toMatchObject({ found: null, certainty: 'unknown', set: [{ value: '59' }] })
})

test('a count that did not reach the limit gives no limit, and two give a lower bound', () => {
  for (const one of [count(130, 1, false), count(47, 0, false)])
    expect(judgeRateLimit(counted(one), configured)).toMatchObject({
      certainty: 'unknown',
      set: [],
    })
  expect(judgeRateLimit(counted(count(130, 0, false), count(130, 0, false)), configured)).toMatchObject({
    found: 'more than 130',
  })
})

test.each([
  [[25], { found: 'none' }],
  [[8, 8, 8], { found: '8 a second', certainty: 'sure' }],
  [[5, 7, 8], { certainty: 'unknown' }],
  [[9, 4, 9], { certainty: 'unknown' }],
  [[5, 1, 1], { certainty: 'unknown' }],
  [[7, 0], { certainty: 'unknown' }],
])('the limit per second is judged from %j accepted requests in each burst', (bursts, finding) => {
  expect(judgePerSecondLimit(bursts, 10, configured)).toMatchObject(finding)
})

describe('a limit that refills gradually', () => {
  const refilled = (letInBefore: number, letInAfter: number, afterMs: number, rounds = 5) => ({
    ...count(letInBefore + letInAfter, 0, false),
    refill: { letInBefore, beforeMs: 0, letInAfter, afterMs, rounds },
  })

  test('gets the window in which it gives back what it lets in at once', () => {
    const finding = judgeRateLimit(counted(refilled(60, 70, 42_000), refilled(60, 70, 42_000)), configured)
    expect(finding).toMatchObject({ found: '60 at once, then 100 in 60 s', certainty: 'sure', differs: true })
    expect(finding.set).toMatchObject([
      { variable: 'RATE_LIMIT_REQUESTS', value: '60' },
      { variable: 'RATE_LIMIT_WINDOW_SECONDS', value: '36' },
    ])
  })

  test('changes nothing if it gives at least the configured rate and lets in as much at once', () => {
    expect(judgeRateLimit(counted(refilled(120, 70, 42_000), refilled(120, 70, 42_000)), configured).set).toEqual([])
  })

  test.each([
    ['differ', [refilled(60, 70, 42_000), refilled(60, 35, 42_000)], 'likely'],
    ['are those of a limit per second', [refilled(7, 49, 17_500, 7), refilled(7, 49, 17_500, 7)], null],
    ['are those of a window that ended once', [refilled(60, 60, 42_000, 1), refilled(60, 60, 42_000, 1)], null],
  ])('is not sure if two counts %s', (_, counts, certainty) => {
    const bucket = inferBucket(counts)
    expect(bucket === null ? null : judgeRateLimit(counted(...counts), configured).certainty).toBe(certainty)
  })
})
