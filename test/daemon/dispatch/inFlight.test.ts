import { expect, test } from 'vitest'
import { InFlight } from '../../../src/daemon/dispatch/inFlight.ts'
import { submission } from '../../support/submission.ts'

const poll = { requestId: '1', claimId: 'claim' }

test('a request is in hand until its outcome is written, and then makes room', async () => {
  let rooms = 0
  const inFlight = new InFlight(() => {
    rooms += 1
  })
  const record = submission({ id: 'record' })
  const written = Promise.withResolvers<void>()
  inFlight.follow({ submission: record, poll: null }, () => written.promise)
  inFlight.follow({ submission: submission(), poll }, () => written.promise)
  inFlight.follow({ submission: null, poll: null }, () => written.promise)
  const seen = () => [inFlight.count(), inFlight.sending(), inFlight.polls(), rooms]
  expect(seen()).toEqual([3, [record], [poll], 0])
  written.resolve()
  await inFlight.drained()
  expect(seen()).toEqual([0, [], [], 3])
})

test('a request is in hand before it begins', () => {
  const inFlight = new InFlight(() => {})
  inFlight.follow({ submission: submission(), poll: null }, async () => expect(inFlight.sending()).toHaveLength(1))
})
