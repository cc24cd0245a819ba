import { expect, test } from 'vitest'
import { states, statesNeedingAttention } from '../../src/model/submission.ts'
import { type FilterOptions, hasFilters, parseFilters } from '../../src/operations/filters.ts'

const nowMs = Date.UTC(2026, 10, 3, 12)

function read(options: FilterOptions) {
  return parseFilters(options, {
    defaultStates: statesNeedingAttention,
    allowedStates: states,
    whyNotAllowed: () => '',
    nowMs,
  })
}

test('without --state, the filter matches the states that need attention', () => {
  expect(read({})).toMatchObject({ kind: 'value', filter: { states: statesNeedingAttention }, limit: null })
})

test('--state takes several states, and ignores blanks and capitals', () => {
  expect(read({ state: 'Failed, queued' })).toMatchObject({ filter: { states: ['failed', 'queued'] } })
})

test('every mistake is reported at once, with the allowed values and what was probably meant', () => {
  const wrong = read({ state: 'faild,nonsense', since: 'yesterday', limit: '0' })
  expect(wrong).toMatchObject({ kind: 'invalid' })
  const problems = wrong.kind === 'invalid' ? wrong.problems : []
  expect(problems).toHaveLength(4)
  expect(problems[0]).toContain('did you mean "failed"?')
  expect(problems[0]).toContain('queued, sending, accepted')
  expect(problems[1]).toContain('--state nonsense')
  expect(problems[2]).toContain('90m, 2h, 3d')
  expect(problems[3]).toContain('from 1 to')
})

test('a state that the command cannot work on is refused with the reason', () => {
  const whyNotAllowed = () => 'settle it'
  const read = parseFilters(
    { state: 'uncertain' },
    { defaultStates: [], allowedStates: ['failed'], whyNotAllowed, nowMs },
  )
  expect(read).toEqual({ kind: 'invalid', problems: ['--state uncertain: settle it'] })
})

test('--since after --until is a mistake', () => {
  expect(read({ since: '1h', until: '2h' })).toMatchObject({ kind: 'invalid' })
  expect(read({ since: '2h', until: '1h' })).toMatchObject({ kind: 'value' })
})

test('--limit does not count as a filter, --key does', () => {
  expect(hasFilters({ limit: '5' })).toBe(false)
  expect(hasFilters({ key: 'k' })).toBe(true)
})

test('--transaction, --containing and --cause count as filters, and must not be empty', () => {
  expect(hasFilters({ transaction: 'tx' })).toBe(true)
  expect(hasFilters({ containing: 'x' })).toBe(true)
  expect(hasFilters({ mayHaveArrived: true })).toBe(true)
  expect(read({ transaction: ' tx ', containing: 'a b', cause: '0A1b2c3d' })).toMatchObject({
    filter: { transactionId: 'tx', cause: '0a1b2c3d' },
    containing: 'a b',
  })
  expect(read({ transaction: '', containing: ' ', cause: 'E001' })).toMatchObject({
    problems: [
      '--transaction needs an id, such as --transaction 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f',
      '--containing needs a text, such as --containing PO-4711',
      expect.stringContaining('`outboxd list --by-cause` shows'),
    ],
  })
})
