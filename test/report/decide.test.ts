import { expect, test } from 'vitest'
import { judgeOutcome } from '../../src/report/decide.ts'

const refused = { kind: 'refused', code: '23514', words: 'it violates a check', isLock: false } as const
const locked = { kind: 'locked', holder: 4711 } as const

test('a row that knows is done with', () => {
  expect(judgeOutcome({ kind: 'written' }, 7)).toEqual({ againInMs: null, problem: null })
})

test('a lock is waited for from one second on, and is a problem only when it lasts', () => {
  const judged = [0, 1, 2, 3, 9].map((failures) => judgeOutcome(locked, failures))
  expect(judged.map(({ againInMs }) => againInMs)).toEqual([1_000, 2_000, 4_000, 8_000, 30_000])
  expect(judged.map(({ problem }) => problem?.kind)).toEqual([
    undefined,
    undefined,
    undefined,
    'report_locked',
    'report_locked',
  ])
  expect(judged[3]?.problem?.detail).toBe('the session with pid 4711 has the row locked')
  expect(judgeOutcome({ kind: 'locked', holder: null }, 3).problem?.detail).toBe('a session has the row locked')
})

test('what the table refuses is a problem at once, with its SQLSTATE, and tried again ever later', () => {
  const judged = [0, 1, 6, 1_000_000].map((failures) => judgeOutcome(refused, failures))
  expect(judged.map(({ againInMs }) => againInMs)).toEqual([5_000, 10_000, 320_000, 600_000])
  expect(judged[0]?.problem).toEqual({
    kind: 'report_refused',
    detail: 'SQLSTATE 23514: it violates a check',
    retryInMs: 5_000,
  })
})

test('a lock within a trigger is a lock; a row that ignores us is a problem of its own', () => {
  expect(judgeOutcome({ ...refused, code: '55P03', isLock: true }, 0)).toEqual({ againInMs: 1_000, problem: null })
  expect(judgeOutcome({ kind: 'ineffective', why: 'a trigger' }, 0).problem).toMatchObject({
    kind: 'mark_ineffective',
    detail: 'a trigger',
  })
})
