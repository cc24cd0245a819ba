/** `synchronous`: a failover promotes only a standby that has every commit. */
export type LedgerStandby = 'none' | 'synchronous'

/** What one call of `outboxd.history` has read. */
export interface HistoryReading {
  /** True if the pause for the history stands: only `recover` ends it. */
  isLost: boolean
  /** When an operator last said `recover`. */
  recoveredAtMs: number | null
  /** True if no daemon has written the ledger's identity yet. */
  isNew: boolean
  /** The part of the identity in which the ledger differs from its server. */
  difference: 'system' | 'database' | 'table' | 'writer' | 'timeline' | null
  /** What this daemon wrote and does not find. */
  missing: 'heartbeat' | 'request' | null
}

export type HistoryVerdict =
  | { kind: 'stands' }
  /** The ledger was just created: the daemon writes its identity. */
  | { kind: 'new' }
  /** A declared standby was promoted, and this daemon misses nothing: it takes the new timeline. */
  | { kind: 'promoted' }
  /** The pause stands, or nothing is known yet. */
  | { kind: 'waits' }
  /** A declared standby was promoted. Only a daemon that knows the old timeline may take the new one. */
  | { kind: 'others' }
  | { kind: 'lost'; detail: string }

/**
 * Decides whether the ledger still has all that was committed.
 *
 * @param reading null if the ledger's row is gone
 * @param knows true if this daemon has written a heartbeat under the identity that the ledger has
 */
export function judgeHistory(
  reading: HistoryReading | null,
  { knows, standby }: { knows: boolean; standby: LedgerStandby },
): HistoryVerdict {
  if (reading === null) return { kind: 'lost', detail: 'the row of the table ledger is gone' }
  const { isLost, isNew, missing, difference } = reading
  if (isLost) return { kind: 'waits' }
  if (isNew) return knows ? { kind: 'lost', detail: 'the ledger was created again' } : { kind: 'new' }
  const isDeclared = difference === 'timeline' && standby === 'synchronous'
  if (difference !== null && !isDeclared) return { kind: 'lost', detail: differences[difference] }
  if (missing !== null) return { kind: 'lost', detail: `a ${missing} that a daemon had written is missing` }
  if (!isDeclared) return { kind: 'stands' }
  return { kind: knows ? 'promoted' : 'others' }
}

export const differences: Record<NonNullable<HistoryReading['difference']>, string> = {
  system: 'the ledger is on a different server: a dump was restored, or the database was moved or upgraded',
  database: 'the ledger is in a different database: a dump was restored, or the database was copied',
  table: 'the ledger’s tables were created again: a dump was restored',
  writer: 'rows of a backup were restored into the ledger’s tables',
  timeline: 'the server has a new timeline: a standby was promoted, or a backup was recovered',
}
