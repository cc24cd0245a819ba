import { expect, test } from 'vitest'
import { decideReport } from '../../../src/daemon/report/decideReport.ts'

const refused = { kind: 'refused', code: '23514', message: 'it violates a check', why: 'row' } as const
const locked = { kind: 'locked', holder: 4711 } as const

test('a row that was written is done', () => {
  expect(decideReport({ kind: 'written' }, 7)).toEqual({ againInMs: null, problem: null })
})

test('a locked row is retried from one second on, and is a problem only if the lock lasts', () => {
  const decided = [0, 1, 2, 3, 9].map((failures) => decideReport(locked, failures))
  expect(decided.map(({ againInMs }) => againInMs)).toEqual([1_000, 2_000, 4_000, 8_000, 30_000])
  expect(decided.map(({ problem }) => problem?.kind)).toEqual([
    undefined,
    undefined,
    undefined,
    'report_locked',
    'report_locked',
  ])
  expect(decided[3]?.problem?.detail).toBe('the session with pid 4711 has the row locked')
  expect(decideReport({ kind: 'locked', holder: null }, 3).problem?.detail).toBe('a session has the row locked')
})

test('a refused row is a problem at once, with its SQLSTATE, and is retried less and less often', () => {
  const decided = [0, 1, 6, 1_000_000].map((failures) => decideReport(refused, failures))
  expect(decided.map(({ againInMs }) => againInMs)).toEqual([5_000, 10_000, 320_000, 600_000])
  expect(decided[0]?.problem).toEqual({
    kind: 'report_refused',
    detail: 'SQLSTATE 23514: it violates a check',
    retryInMs: 5_000,
  })
})

test('a lock in a trigger counts as a lock; a row that stays unchanged is a problem of its own', () => {
  expect(decideReport({ ...refused, code: '55P03', why: 'lock' }, 0)).toEqual({ againInMs: 1_000, problem: null })
  expect(decideReport({ kind: 'ineffective', why: 'a trigger' }, 0).problem).toMatchObject({
    kind: 'mark_ineffective',
    detail: 'a trigger',
  })
})
