import { expect, test } from 'vitest'
import { createInFlightTracker } from '../../../src/daemon/dispatch/inFlight.ts'
import { submission } from '../../support/submission.ts'

function setup() {
  const failed: unknown[] = []
  let rooms = 0
  const inHand = createInFlightTracker({
    onFailed: (error) => failed.push(error),
    onRoom() {
      rooms += 1
    },
  })
  return { ...inHand, failed, rooms: () => rooms }
}

const poll = { requestId: '1', claimId: 'claim' }

test('a request is in hand until its outcome is written, and then makes room', async () => {
  const { follow, count: inFlight, sending, polls: pollsInHand, drained, rooms } = setup()
  const record = submission({ id: 'record' })
  const written = Promise.withResolvers<void>()
  follow({ submission: record, poll: null }, () => written.promise)
  follow({ submission: submission(), poll }, () => written.promise)
  follow({ submission: null, poll: null }, () => written.promise)
  expect([inFlight(), sending(), pollsInHand(), rooms()]).toEqual([3, [record], [poll], 0])
  written.resolve()
  await drained()
  expect([inFlight(), sending(), pollsInHand(), rooms()]).toEqual([0, [], [], 3])
})

test('a request is in hand before it begins', () => {
  const { follow, sending } = setup()
  follow({ submission: submission(), poll: null }, async () => expect(sending()).toHaveLength(1))
})

test('a request that fails is reported, and makes room as well', async () => {
  const { follow, drained, failed, rooms } = setup()
  const mistake = new Error('a mistake of ours')
  follow({ submission: submission(), poll: null }, () => Promise.reject(mistake))
  await drained()
  expect([failed, rooms()]).toEqual([[mistake], 1])
})
