import { expect, test } from 'vitest'
import { untilMore, untilPauseEnds } from '../../../src/daemon/dispatch/lookAgain.ts'

const sight = { submissionsReady: 0, pollsDue: 0, nextDueMs: null, nextSlotMs: null }

test.each([
  ['nothing in sight', sight, undefined, 1_000],
  ['something that becomes due', { ...sight, nextDueMs: 300, nextSlotMs: 20 }, undefined, 300],
  [
    'something that waits for a slot',
    { ...sight, submissionsReady: 1, nextDueMs: 20, nextSlotMs: 400 },
    undefined,
    400,
  ],
  ['a slot that is far away', { ...sight, pollsDue: 1, nextSlotMs: 40_000 }, undefined, 1_000],
  ['slots that may be divided otherwise soon', { ...sight, pollsDue: 1, nextSlotMs: 400 }, 70, 70],
  ['what should be there already', { ...sight, nextDueMs: -5 }, undefined, 1],
])('%s', (_, seen, againInMs, expected) => {
  expect(untilMore(seen, againInMs)).toBe(expected)
})

test.each([
  [[300, 700], 700],
  [[200_000], 1_000],
  [[null, 5], 1_000],
  [[0], 1],
])('pauses of %j ms', (lefts, expected) => {
  expect(untilPauseEnds(lefts.map((leftMs) => ({ leftMs })))).toBe(expected)
})
