import type { Clock } from '../clock.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { createTurns } from './createTurns.ts'

/** Of the connections that pages have, this many may be busy with what takes up to ten seconds. */
const searchesAtOnce = 2
const searchesWaitingMax = 10

/** What reads more than these takes longer than a moment. */
const rowsOfAMoment = 10_000

/** The store, whose long searches wait for each other, so that what everybody looks at is there meanwhile. */
export function withFewSearches(store: OperatorStore): OperatorStore {
  const inTurn = createTurns(searchesAtOnce, searchesWaitingMax)
  return {
    ...store,
    searchText: (...asked) => inTurn(() => store.searchText(...asked)),
    readCauses(filter, rowsMax) {
      const read = () => store.readCauses(filter, rowsMax)
      return rowsMax > rowsOfAMoment ? inTurn(read) : read()
    },
  }
}

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
