import { expect, test } from 'vitest'
import { chooseBackoffStepsMs, createPauseBackoff } from '../../src/ledger/pauses.ts'
import type { PauseToRaise } from '../../src/model.ts'

const backoff = createPauseBackoff({ unavailablePauseMs: 300_000, unauthorizedPauseMs: 60_000 })
const steps = (reason: PauseToRaise['reason'], more: Partial<PauseToRaise> = {}) =>
  chooseBackoffStepsMs({ reason, askedMs: null, detail: '', ...more }, backoff)

test('each reason has its own steps', () => {
  expect(steps('throttled')).toEqual([1_000, 2_000, 4_000, 8_000])
  expect(steps('unavailable')).toEqual([300_000])
  expect(steps('unauthorized')).toEqual([60_000])
  expect(steps('unreachable')[0]).toBe(1_000)
  expect(steps('unreachable').at(-1)).toBe(60_000)
})

test('if each try costs a record, the wait grows up to half an hour', () => {
  const patient = steps('unreachable', { hasLongBackoff: true })
  expect(patient[0]).toBe(1_000)
  expect(patient.at(-1)).toBe(1_800_000)
  expect(patient.toSorted((a, b) => a - b)).toEqual(patient)
})

test('if something other than the service answers, the first ten tries are a second apart', () => {
  const answered = steps('unreachable', { answeredByOther: true })
  expect(answered.slice(0, 10)).toEqual(Array(10).fill(1_000))
  expect(answered.slice(10)).toEqual(steps('unreachable', { hasLongBackoff: true }))
})
