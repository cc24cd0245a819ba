import { expect, test } from 'vitest'
import { decideWriteBack } from '../../src/daemon/decideWriteBack.ts'

const refused = { code: '23514', message: 'it violates a check' }
const decide = (outcome: Parameters<typeof decideWriteBack>[0], failures: number, hasEnded = true) =>
  decideWriteBack(outcome, failures, hasEnded)

test('a row that was written is done', () => {
  expect(decide('written', 7)).toEqual({ againInMs: null, problem: null })
})

test('a locked row is tried again from one second on, and is a problem only if the lock lasts', () => {
  const decided = [0, 1, 2, 3, 9].map((failures) => decide('locked', failures))
  expect(decided.map(({ againInMs }) => againInMs)).toEqual([1_000, 2_000, 4_000, 8_000, 30_000])
  expect(decided.map(({ problem }) => problem?.kind)).toEqual([
    undefined,
    undefined,
    undefined,
    'report_locked',
    'report_locked',
  ])
})

test('a refused row is a problem at once, in the words of Postgres, and is tried less and less often', () => {
  const decided = [0, 1, 6, 1_000_000].map((failures) => decide(refused, failures))
  expect(decided.map(({ againInMs }) => againInMs)).toEqual([5_000, 10_000, 320_000, 600_000])
  expect(decided[0]?.problem).toEqual({
    kind: 'report_refused',
    detail: 'SQLSTATE 23514: it violates a check',
    retryInMs: 5_000,
  })
})

test.each([
  ['a lock timeout', '55P03'],
  ['a deadlock', '40P01'],
])('%s in a trigger counts as a lock', (_, code) => {
  expect(decide({ ...refused, code }, 0)).toEqual({ againInMs: 1_000, problem: null })
})

test('a row that stays unchanged, and a different row with the same id, are problems of their own', () => {
  expect(decide('unchanged', 0)).toMatchObject({ againInMs: 5_000, problem: { kind: 'mark_ineffective' } })
  expect(decide('another', 1)).toMatchObject({ againInMs: 10_000, problem: { kind: 'row_conflict' } })
})

test('a missing row is given up after a day, and only the end of a record raises the problem', () => {
  expect(decide('gone', 0)).toMatchObject({ againInMs: 3_600_000, problem: { kind: 'row_missing' } })
  expect(decide('gone', 24)).toEqual({ againInMs: null, problem: null })
  expect(decide('gone', 0, false)).toEqual({ againInMs: null, problem: null })
})
