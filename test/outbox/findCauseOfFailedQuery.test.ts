import { expect, test } from 'vitest'
import { QueryFailed } from '../../src/outbox/contentQueries.ts'
import { findCauseOfFailedQuery } from '../../src/outbox/findCauseOfFailedQuery.ts'

const failing = (code: string) => new QueryFailed('the query', code, new Error('no'))

/** Runs the search on records 1 to `count`, of which `fails` says what they fail with. */
async function search(count: number, fails: (id: number) => string | null, failsWithoutRecords = false) {
  let trials = 0
  const errorOf = (ids: readonly string[]) => ids.map((id) => fails(Number(id))).find((code) => code !== null) ?? null
  const ids = Array.from({ length: count }, (_, i) => String(i + 1))
  const fault = await findCauseOfFailedQuery(ids, failing(errorOf(ids) ?? ''), {
    async tryPart(part) {
      trials += 1
      const code = errorOf(part)
      return code === null ? null : failing(code)
    },
    failsWithoutRecords: async () => failsWithoutRecords,
  })
  return { trials, found: fault.kind === 'records' ? fault.records.map(({ id }) => Number(id)) : fault.kind }
}

test.each<[string, number, (id: number) => string | null, number[] | 'type' | 'moment']>([
  ['one of 500', 500, (id) => (id === 217 ? '42501' : null), [217]],
  ['three of 500', 500, (id) => ([1, 2, 500].includes(id) ? '22012' : null), [1, 2, 500]],
  ['the first ten of 20', 20, (id) => (id <= 10 ? '42P01' : null), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
  ['all but one of four', 4, (id) => (id === 3 ? null : '42501'), [1, 2, 4]],
  ['all of 500', 500, () => '22012', 'type'],
  ['all of two, about data', 2, () => '22012', [1, 2]],
  ['all of two, about rights', 2, () => '42501', 'type'],
  ['the only one, about data', 1, () => 'P0001', [1]],
  ['the only one, about rights', 1, () => '42501', 'type'],
  ['a timeout of one', 10, (id) => (id === 4 ? '57014' : null), 'moment'],
  ['a lock beside another error', 10, (id) => (id === 4 ? '55P03' : id === 2 ? '22012' : null), 'moment'],
])('%s', async (_, count, fails, expected) => {
  const { found, trials } = await search(count, fails)
  expect(found).toEqual(expected)
  expect(trials).toBeLessThan(2 * count + 1)
})

test('a query that fails without any record is wrong, whatever its code, and no part of the records is tried', async () => {
  expect(await search(500, () => '22P02', true)).toEqual({ found: 'type', trials: 0 })
})

test('a query that fails for all takes few trials', async () => {
  expect((await search(500, () => '42P01')).trials).toBeLessThan(130)
})
