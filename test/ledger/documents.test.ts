import { expect, test } from 'vitest'
import { computeRequestDigest, findReasonToDiscardDocument } from '../../src/ledger/documents.ts'
import { type State, states } from '../../src/model/submission.ts'

/** What becomes of a document whose last record has the same request, by the state of that record. */
const table: Record<State, 'sent' | 'unchanged'> = {
  queued: 'unchanged',
  sending: 'unchanged',
  accepted: 'unchanged',
  completed: 'unchanged',
  failed: 'sent',
  rejected: 'sent',
  uncertain: 'unchanged',
  discarded: 'unchanged', // only if its request may have reached the service: other discarded records are passed over
}

test.each(
  states,
)('the same request after a record that is %s is sent only if that record failed or was rejected', (state) => {
  const reason = findReasonToDiscardDocument('a', { outboxId: '7', state, digest: 'a', mayHaveArrived: false })
  expect(reason).toBe(table[state] === 'sent' ? null : 'unchanged since outbox:7')
})

test.each(states)('a different or unknown request after a record that is %s is sent', (state) => {
  expect(findReasonToDiscardDocument('b', { outboxId: '7', state, digest: 'a', mayHaveArrived: true })).toBeNull()
  expect(findReasonToDiscardDocument('b', { outboxId: '7', state, digest: null, mayHaveArrived: true })).toBeNull()
  expect(findReasonToDiscardDocument(null, { outboxId: '7', state, digest: null, mayHaveArrived: true })).toBeNull()
})

test.each([
  'failed',
  'rejected',
] as const)('the same request after a %s record that may have arrived is not sent', (state) => {
  expect(findReasonToDiscardDocument('a', { outboxId: '7', state, digest: 'a', mayHaveArrived: true })).toBe(
    'unchanged since outbox:7',
  )
})

test('the first record of a document is sent', () => {
  expect(findReasonToDiscardDocument('a', null)).toBeNull()
})

test('the digest of a request differs by endpoint and by each digit, not by submission', () => {
  const [one, two] = ['019aaaaa-0000-7000-8000-000000000001', '019aaaaa-0000-7000-8000-000000000002']
  const digest = (id: string, resource: 'data' | 'orders', total: string) =>
    computeRequestDigest({ id, resource, body: `{"ref":"${id}","total":${total}}` })
  expect(digest(one, 'orders', '1.10')).toBe(digest(two, 'orders', '1.10'))
  expect(digest(one, 'orders', '1.10')).not.toBe(digest(one, 'data', '1.10'))
  expect(digest(one, 'orders', '1.10')).not.toBe(digest(one, 'orders', '1.1'))
  expect(computeRequestDigest({ id: one, resource: 'data', body: null })).toBeNull()
})
