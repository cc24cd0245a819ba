import type { NamedRowSearch } from '../ledger/history/createHistory.ts'
import type { NamedRow } from '../ledger/history/decideHistory.ts'
import { wasCanceled } from '../postgres/sqlState.ts'
import type { TakenSlice } from './takenRows.ts'

/** A round of a loop that takes long looks stuck: the next one goes on. */
const searchMs = 1_000
/** For those who look again and again, what was found holds for so many times as long as the search took: a large table is not read all the time. */
const holdsTimes = 10

/** Reads the rows of a slice that say they are under way, and those that wait and name a transaction. */
type ReadSlice = (after: string | null) => Promise<Pick<TakenSlice, 'unknown' | 'upTo'>>

/** Looks for a row that waits, or says that it is under way. A table that no index lets be read in slices is not searched. */
export function createNamedRowSearch(
  readSlice: ReadSlice,
  elapsedMs: () => number = () => performance.now(),
): NamedRowSearch {
  const search = createSearch(readSlice, elapsedMs)
  const searchNow = createSearch(readSlice, elapsedMs)
  let noneUntilMs = Number.NEGATIVE_INFINITY
  return {
    async find() {
      if (elapsedMs() < noneUntilMs) return { kind: 'none' }
      const { found, tookMs } = await search()
      if (found.kind === 'none') noneUntilMs = elapsedMs() + holdsTimes * tookMs
      return found
    },
    async findNow() {
      const { found } = await searchNow()
      if (found.kind === 'named') noneUntilMs = Number.NEGATIVE_INFINITY
      return found
    },
  }
}

/** @returns a search through the table; `tookMs`: all its calls, since it began */
function createSearch(readSlice: ReadSlice, elapsedMs: () => number) {
  let after: string | null = null
  let tookMs = 0

  async function search(untilMs: number): Promise<NamedRow> {
    for (;;) {
      const { unknown, upTo } = await readSlice(after)
      const named = unknown.find(({ transactionId }) => transactionId !== null)
      if (named !== undefined) return { kind: 'named', outboxId: named.outboxId }
      after = upTo
      if (upTo === null) return { kind: 'none' }
      if (elapsedMs() > untilMs) return { kind: 'unknown' }
    }
  }

  return async (): Promise<{ found: NamedRow; tookMs: number }> => {
    const beganMs = elapsedMs()
    if (after === null) tookMs = 0
    const found = await search(beganMs + searchMs).catch((error: unknown): NamedRow => {
      if (!wasCanceled(error)) throw error
      after = null
      return { kind: 'none' }
    })
    tookMs += elapsedMs() - beganMs
    return { found, tookMs }
  }
}
