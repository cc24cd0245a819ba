import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countPermitsForSubmissions, limitToOneSubmission, sumPermitsInHandAndTaken } from '../../src/ledger/budget.ts'

const wanted = (submissions: number, polls: number) => ({ submissions, polls, rarePolls: 0, permits: 0 })

test.each([
  [10, 10, 0, 10],
  [10, 4, 6, 4],
  [6, 8, 2, 4],
  [6, 8, 8, 3],
  [1, 8, 8, 0],
  [1, 8, 0, 1],
  [0, 8, 8, 0],
])('of %d permits, with %d submissions and %d polls wanted, %d go to submissions', (permits, posts, polls, given) => {
  expect(countPermitsForSubmissions(wanted(posts, polls), permits)).toBe(given)
})

test('submissions never get more than they want, and leave polls what they want of half the permits', () => {
  fc.assert(
    fc.property(fc.nat(500), fc.nat(500), fc.nat(500), (submissions, polls, permits) => {
      const given = countPermitsForSubmissions(wanted(submissions, polls), permits)
      expect(given).toBeGreaterThanOrEqual(0)
      expect(given).toBeLessThanOrEqual(Math.min(submissions, permits))
      expect(permits - given).toBeGreaterThanOrEqual(Math.min(polls, Math.ceil(permits / 2)))
    }),
  )
})

test('the permits are those in hand plus those of the slots taken', () => {
  const request = { submissions: 5, polls: 3, rarePolls: 2, permits: 6 }
  expect(sumPermitsInHandAndTaken(request, [])).toBe(4)
  expect(sumPermitsInHandAndTaken(request, [{ permits: 2 }, { permits: 3 }])).toBe(9)
})

test('until a record has proven that the pauses are over, one is sent, or none if another instance sends it', () => {
  const request = { submissions: 5, polls: 3, rarePolls: 2, permits: 10 }
  expect(limitToOneSubmission(request, true)).toEqual({ submissions: 1, polls: 3, rarePolls: 2, permits: 6 })
  expect(limitToOneSubmission(request, false)).toEqual({ submissions: 0, polls: 3, rarePolls: 2, permits: 5 })
  const oneInHand = { submissions: 1, polls: 0, rarePolls: 1, permits: 1 }
  expect(limitToOneSubmission(oneInHand, false)).toEqual({ submissions: 0, polls: 0, rarePolls: 1, permits: 0 })
})

test('without slots, a claim after a trial has only the permits in hand', () => {
  const request = { submissions: 1, polls: 0, rarePolls: 1, permits: 2 }
  expect(sumPermitsInHandAndTaken(limitToOneSubmission(request, false), [])).toBe(0)
})
