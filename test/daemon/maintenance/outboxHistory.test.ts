import { expect, test } from 'vitest'
import { createOutboxHistory } from '../../../src/daemon/maintenance/outboxHistory.ts'

function setup(readHistory: () => Promise<{ rows: number } | null>) {
  const state = { clearFails: false }
  const calls: string[] = []
  const history = createOutboxHistory({
    readHistory,
    raise: async (detail) => void calls.push(detail),
    async clear() {
      if (state.clearFails) throw new Error('the database is away')
      calls.push('cleared')
    },
    warn: (_, { count }) => calls.push(`warned of ${count}`),
  })
  return { ...history, state, calls }
}

test('more than a thousand rows from before the start are told', async () => {
  const { tell, calls } = setup(async () => ({ rows: 1_001 }))
  await tell()
  expect(calls).toEqual([
    'warned of 1001',
    '1001 rows waited in the outbox table before anything was captured, and all of them are to be sent',
  ])
})

test.each([
  ['fewer', async () => ({ rows: 1_000 })],
  ['no history', async () => null],
  ['a database that is away', () => Promise.reject(new Error('connection refused'))],
])('%s: nothing is told', async (_, readHistory) => {
  const { tell, calls } = setup(readHistory)
  await tell()
  expect(calls).toEqual([])
})

test('once few rows wait the problem is over, and that is said until it could be written', async () => {
  const { sawWaiting, state, calls } = setup(async () => null)
  await sawWaiting(1_001)
  state.clearFails = true
  await expect(sawWaiting(1_000)).rejects.toThrow('away')
  state.clearFails = false
  await sawWaiting(1_000)
  await sawWaiting(0)
  expect(calls).toEqual(['cleared'])
})
