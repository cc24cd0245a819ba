import type { LedgerSnapshot } from '../ledger/snapshot.ts'
import type { Snapshot } from '../observe/metricRows.ts'

/** What both databases say now, for the metrics. Pure. */
export function snapshotOf(ledger: LedgerSnapshot, outbox: { waiting: number; oldestMs: number | null }): Snapshot {
  const unsent = [ledger.oldestUnsentMs, outbox.oldestMs].filter((ms) => ms !== null)
  return {
    ...ledger,
    pauses: ledger.pauses.map(({ reason }) => reason),
    outboxWaiting: outbox.waiting,
    oldestUnsentMs: unsent.length > 0 ? Math.min(...unsent) : null,
  }
}
