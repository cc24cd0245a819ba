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

const job = { id: 'job', retryCount: 0 }

test('a request is in hand until its outcome is written, and then makes room', async () => {
  const { follow, count: inFlight, sending, polls: pollsInHand, rarePolls, drained, rooms } = setup()
  const record = submission({ id: 'record' })
  const written = Promise.withResolvers<void>()
  follow({ submission: record, job: null }, () => written.promise)
  follow({ submission: submission({ polledRarely: true }), job }, () => written.promise)
  follow({ submission: null, job: null }, () => written.promise)
  expect([inFlight(), sending(), pollsInHand(), rarePolls(), rooms()]).toEqual([3, [record], [job], 1, 0])
  written.resolve()
  await drained()
  expect([inFlight(), sending(), pollsInHand(), rarePolls(), rooms()]).toEqual([0, [], [], 0, 3])
})

test('a request is in hand before it begins', () => {
  const { follow, sending } = setup()
  follow({ submission: submission(), job: null }, async () => expect(sending()).toHaveLength(1))
})

test('a request that fails is reported, and makes room as well', async () => {
  const { follow, drained, failed, rooms } = setup()
  const mistake = new Error('a mistake of ours')
  follow({ submission: submission(), job: null }, () => Promise.reject(mistake))
  await drained()
  expect([failed, rooms()]).toEqual([[mistake], 1])
})
