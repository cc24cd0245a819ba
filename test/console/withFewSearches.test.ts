import { expect, test } from 'vitest'
import { createTurns } from '../../src/console/createTurns.ts'
import { withFewSearches } from '../../src/console/searches.ts'
import type { SubmissionFilter } from '../../src/ledger/operator/selectSubmissions.ts'
import type { OperatorStore } from '../../src/store/operatorStore.ts'

test('two search at once, ten wait for their turn, and one more is told to come later', async () => {
  const searches: PromiseWithResolvers<void>[] = []
  const search = async () => {
    const one = Promise.withResolvers<void>()
    searches.push(one)
    await one.promise
    return { ids: [], lookedAt: 0, isCut: false }
  }
  const none = async () => ({ causes: [], lookedAt: 0, isCut: false })
  const store = withFewSearches({ searchText: search, readCauses: none } as Partial<OperatorStore> as OperatorStore)
  const filter = {} as SubmissionFilter
  const bounds = { rowsMax: 1, timeMaxMs: 1 }
  const asked = Array.from({ length: 12 }, () => store.searchText(filter, 'x', bounds))
  await expect(store.searchText(filter, 'x', bounds)).rejects.toThrow('try again in a moment')
  expect(searches).toHaveLength(2)
  expect(await store.readCauses(filter, 1_000)).toMatchObject({ lookedAt: 0 }) // takes a moment, and waits for none
  for (let i = 0; i < 12; i++) {
    searches[i]?.resolve()
    await asked[i]
  }
  expect(searches).toHaveLength(12)
})

test('work that fails gives its turn to the next', async () => {
  const inTurn = createTurns(1, 1)
  const failing = inTurn(() => Promise.reject(new Error('no')))
  const next = inTurn(async () => 'yes')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('yes')
})
