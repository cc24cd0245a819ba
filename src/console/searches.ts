import type { Clock } from '../clock.ts'
import type { SearchText } from '../operations/filters.ts'
import { createTurns, type Turns } from './createTurns.ts'
import type { Viewer } from './guard/viewer.ts'
import type { ConsoleParts } from './parts.ts'
import { namedMax, noteSight } from './sights.ts'

/** The console's searches for a text, of all viewers. */
export interface Searches {
  /** A turn for whatever takes up to ten seconds, so that some of the ledger's connections are left for other pages. */
  turns: Turns
  /** Gives what was found less than a minute ago: the next page of a list does not search again. */
  remember: (search: SearchText) => SearchText
}

const searchesAtOnce = 2
const searchesWaitingMax = 10
const rememberedMs = 60_000
const rememberedMax = 10

export function createSearches({ stopwatch }: Pick<Clock, 'stopwatch'>): Searches {
  const remembered = new Map<string, { found: ReturnType<SearchText>; ageMs: () => number }>()
  return {
    turns: createTurns(searchesAtOnce, searchesWaitingMax),
    remember:
      (search) =>
      (...asked) => {
        const key = JSON.stringify(asked)
        const known = remembered.get(key)
        if (known !== undefined && known.ageMs() < rememberedMs) return known.found
        const found = search(...asked)
        remembered.delete(key)
        remembered.set(key, { found, ageMs: stopwatch() })
        found.catch(() => remembered.delete(key))
        const [oldest] = remembered.keys()
        if (remembered.size > rememberedMax && oldest !== undefined) remembered.delete(oldest)
        return found
      },
  }
}

/**
 * Searches for this viewer, and logs it: what a search finds, and what it does not find, tells a masked value piece by piece. The
 * log names each record that was looked at, or, if these were more than 100, those that were found.
 */
export function searchFor(parts: ConsoleParts, viewer: Viewer): SearchText {
  const { turns, remember } = parts.searches
  const search = remember(async (...asked) => {
    using _ = await turns.take()
    return (await parts.store()).searchText(...asked)
  })
  return async (filter, text, bounds) => {
    const found = await search(filter, text, bounds)
    const { ids, lookedAt } = found
    const isFew = lookedAt <= namedMax
    const records = await (await parts.store()).select(isFew ? filter : { ...filter, among: ids }, namedMax)
    const unnamed = isFew ? 0 : ids.length - records.length
    await noteSight(parts, viewer, { act: 'search', records, unnamed, detail: { lookedAt, found: ids.length } })
    return found
  }
}
