import type { Clock } from '../clock.ts'
import type { SearchText } from '../operations/filters.ts'
import { createTurns, type Turns } from './createTurns.ts'

export interface Searches {
  /** A search takes up to ten seconds, so only some run at once. */
  turns: Turns
  /** Gives what was found within the last minute, for the next page of a list. */
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
