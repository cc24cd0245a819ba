import type { NamedRow } from '../ledger/history/decideHistory.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { wasCanceled } from '../postgres/sqlState.ts'

/** A round of a loop that takes long looks stuck: the next one goes on. */
const searchMs = 1_000
/** What was found holds for so many times as long as the search took: rows that come meanwhile are found, and a large table is not read all the time. */
const holdsTimes = 10

/**
 * Looks for a row that names a transaction and waits, or says that it is under way. Each call goes on where the one before had to
 * stop. A table that no index lets be read in slices is not searched.
 */
export function createNamedRowSearch(outbox: Pick<Outbox, 'readTaken'>, elapsedMs: () => number) {
  let after: string | null = null
  let tookMs = 0
  let noneUntilMs = Number.NEGATIVE_INFINITY

  async function search(untilMs: number): Promise<NamedRow> {
    for (;;) {
      const { unknown, upTo } = await outbox.readTaken(after, true)
      const named = unknown.find(({ transactionId }) => transactionId !== null)
      if (named !== undefined) return { kind: 'named', outboxId: named.outboxId }
      after = upTo
      if (upTo === null) return { kind: 'none' }
      if (elapsedMs() > untilMs) return { kind: 'unknown' }
    }
  }

  return async (): Promise<NamedRow> => {
    const beganMs = elapsedMs()
    if (beganMs < noneUntilMs) return { kind: 'none' }
    const found = await search(beganMs + searchMs).catch((error: unknown): NamedRow => {
      if (wasCanceled(error)) return { kind: 'none' }
      throw error
    })
    tookMs += elapsedMs() - beganMs
    if (found.kind === 'none') {
      noneUntilMs = elapsedMs() + holdsTimes * tookMs
      tookMs = 0
    }
    return found
  }
}
