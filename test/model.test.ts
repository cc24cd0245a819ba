import { expect, test } from 'vitest'
import type { Change } from '../src/model/submission.ts'

/**
 * Checks the types of changes with tsc (`npm run check`): a line that tsc accepts but should refuse is an error. The CHECK
 * constraints of migrations/0001_ledger.sql say the same of the rows.
 */
const poll = { pollInMs: 1_000, polledRarely: false, unknown: false }
const done = { doneMs: 900, errorCode: null, error: 'no' }

const legal: Change[] = [
  { state: 'queued', dueInMs: 0 },
  { state: 'queued', dueInMs: 0, errorCode: 'E003', error: 'its transaction failed' },
  { state: 'sending', transactionId: 'own', ...poll },
  { state: 'accepted', transactionId: 'tx', ...poll },
  { state: 'completed', doneMs: null, result: null },
  { state: 'failed', ...done, mayHaveArrived: true },
  { state: 'rejected', errorCode: 'E001', error: 'no', mayHaveArrived: false },
  { state: 'uncertain', ...done, transactionId: null },
]

const illegal = [
  // @ts-expect-error accepted without a poll: its end would never be known
  { state: 'accepted', transactionId: 'tx' } satisfies Change,
  // @ts-expect-error accepted, and nothing to ask for
  { state: 'accepted', ...poll } satisfies Change,
  // @ts-expect-error accepted under no id
  { state: 'accepted', transactionId: null, ...poll } satisfies Change,
  // @ts-expect-error probing without a poll
  { state: 'sending', transactionId: 'own' } satisfies Change,
  // @ts-expect-error queued, and never due
  { state: 'queued' } satisfies Change,
  // @ts-expect-error queued with a poll
  { state: 'queued', dueInMs: 0, pollInMs: 1_000 } satisfies Change,
  // @ts-expect-error failed, without saying whether it may have arrived
  { state: 'failed', ...done } satisfies Change,
  // @ts-expect-error failed without a reason for the operator
  { state: 'failed', doneMs: null, errorCode: null, mayHaveArrived: false } satisfies Change,
  // @ts-expect-error completed, and yet it goes out again
  { state: 'completed', doneMs: null, result: null, dueInMs: 0 } satisfies Change,
  // @ts-expect-error uncertain says by itself that it may have arrived
  { state: 'uncertain', ...done, mayHaveArrived: true } satisfies Change,
  // @ts-expect-error only an operator discards
  { state: 'discarded' } satisfies Change,
  // @ts-expect-error a field that is left out stays as it was: undefined is no value
  { state: 'queued', dueInMs: 0, inDoubt: undefined } satisfies Change,
]

test('the types allow a step to each state, and refuse twelve illegal steps', () => {
  expect(new Set(legal.map(({ state }) => state)).size).toBe(7)
  expect(illegal).toHaveLength(12)
})
