import type { NamedRow } from '../ledger/history/decideHistory.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { wasCanceled } from '../postgres/sqlState.ts'

/** A round of a loop that takes long looks stuck: the next one goes on. */
const searchMs = 1_000

/**
 * Looks for a row that names a transaction and waits, or says that it is under way. Each call goes on where the one before had to
 * stop. A table that no index lets be read in slices is not searched.
 */
export function createNamedRowSearch(outbox: Pick<Outbox, 'readTaken'>, elapsedMs: () => number) {
  let after: string | null = null
  return async (): Promise<NamedRow> => {
    const untilMs = elapsedMs() + searchMs
    try {
      for (;;) {
        const { unknown, upTo } = await outbox.readTaken(after, true)
        const named = unknown.find(({ transactionId }) => transactionId !== null)
        if (named !== undefined) return { kind: 'named', outboxId: named.outboxId }
        if (upTo === null) return { kind: 'none' }
        after = upTo
        if (elapsedMs() > untilMs) return { kind: 'unknown' }
      }
    } catch (error) {
      if (wasCanceled(error)) return { kind: 'none' }
      throw error
    }
  }
}
