import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findPollsToMoveEarlier } from '../../../src/daemon/track/pollPlanner.ts'

const planned = {
  submissionId: 's',
  jobId: 'j',
  resource: 'data' as const,
  ageMs: 5_000,
  notDoneMs: null,
  inMs: 60_000,
}

test('a poll that was planned late moves to where it would be planned now', () => {
  expect(findPollsToMoveEarlier([planned], () => 8_000)).toEqual([{ submissionId: 's', jobId: 'j', inMs: 3_000 }])
})

test('a poll that would already have come is due at once', () => {
  expect(findPollsToMoveEarlier([planned], () => 2_000)).toEqual([{ submissionId: 's', jobId: 'j', inMs: 0 }])
})

test('the new time counts from when the transaction was last seen pending', () => {
  expect(findPollsToMoveEarlier([{ ...planned, notDoneMs: 4_000 }], () => 8_000)).toEqual([
    { submissionId: 's', jobId: 'j', inMs: 7_000 },
  ])
})

test('a poll is never moved later, nor earlier by less than a fifth', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 120_000 }), fc.integer({ min: 1, max: 120_000 }), (nextMs, inMs) => {
      for (const move of findPollsToMoveEarlier([{ ...planned, inMs }], () => nextMs))
        expect(move.inMs).toBeLessThan(inMs * 0.8)
    }),
  )
})
