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
