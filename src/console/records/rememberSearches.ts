import type { Clock } from '../../clock.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'

type Search = ReturnType<OperatorStore['searchText']>

const rememberedMs = 60_000
const searchesMax = 10

/** Whoever turns the pages of what a search found does not search again: for a minute it is what it was. */
export function rememberSearches({ stopwatch }: Pick<Clock, 'stopwatch'>): (store: OperatorStore) => OperatorStore {
  const searches = new Map<string, { found: Search; ageMs: () => number }>()
  return (store) => ({
    ...store,
    searchText(...asked) {
      const key = JSON.stringify(asked)
      const known = searches.get(key)
      if (known !== undefined && known.ageMs() < rememberedMs) return known.found
      const found = store.searchText(...asked)
      searches.delete(key)
      searches.set(key, { found, ageMs: stopwatch() })
      found.catch(() => searches.delete(key))
      const [oldest] = searches.keys()
      if (searches.size > searchesMax && oldest !== undefined) searches.delete(oldest)
      return found
    },
  })
}
