/** A value that our role may not read is null. */
export interface HistoryIdentity {
  systemId: string | null
  timeline: number | null
  databaseOid: number
  ledgerOid: number
}

/** The ledger's history as one statement read it. Times are those of the database's clock. */
export interface HistoryReading {
  agreed: HistoryIdentity
  agreedAtMs: number
  isByPerson: boolean
  now: HistoryIdentity
  /** Time since a daemon last found the history unchanged. */
  markedForMs: number
  /** Position in the write-ahead log that survives a crash. Null if our role may not read the position. */
  safeLsn: string | null
  /**
   * True if rows of a backup were restored: another program wrote outboxd.history, or the event noted there is gone.
   */
  isPutBack: boolean
  /** True if the server was recovered to a point in time, not to the end of the archive. */
  hasTarget: boolean
  /** True if this session's COMMIT waits for a synchronous standby. */
  isSynchronous: boolean
  /** True if a suspected loss waits for an operator. */
  isFound: boolean
  hasLastClaim: boolean
  /** True if the write-ahead log is at least as long as this instance has seen it. */
  isPastSeen: boolean
  isUnused: boolean
  isEmpty: boolean
  isStandbyMissed: boolean
}

export interface RememberedHistory {
  agreedAtMs: number
  timeline: number | null
}

/** `synchronous`: a failover promotes only a synchronous standby. */
export type LedgerStandby = 'none' | 'synchronous'

/** An outbox row that names a transaction. A ledger without records has lost the record of such a row. */
export type RowSearchResult = { kind: 'unknown' } | { kind: 'none' } | { kind: 'named'; outboxId: string }

export type DataLossVerdict =
  | { kind: 'stands' }
  | { kind: 'agrees'; isPromoted: boolean }
  /** The ledger has no records, so the outbox's rows decide. */
  | { kind: 'asks' }
  | { kind: 'found'; detail: string }
  /** An operator must decide. */
  | { kind: 'waits' }

/** If no daemon has found the history unchanged for longer than this, the new server may be a restored backup. */
const promotedWithinMs = 120_000

/**
 * Decides whether the ledger still has all that was committed.
 *
 * A promoted standby has a later timeline, and so has a backup that was recovered to the end of the archive. The
 * timeline does not show whether the last commits are there. So sending continues only if LEDGER_STANDBY is synchronous
 * and each instance finds its own last claim.
 *
 * A ledger without records is new, or was restored from a backup without records. In the second case, rows of the
 * outbox name transactions.
 */
export function judgeDataLoss(
  reading: HistoryReading,
  { memory, standby, named }: { memory: RememberedHistory | null; standby: LedgerStandby; named: RowSearchResult },
): DataLossVerdict {
  if (reading.isFound) return { kind: 'waits' }
  const { agreed, now } = reading
  const other = otherDatabase(agreed, now)
  const objection = findObjection(reading, memory)
  if (other !== null && objection === null && reading.isUnused)
    return unlessNamed(named, { kind: 'agrees', isPromoted: false })
  const detail = other ?? objection
  if (detail !== null) return { kind: 'found', detail }
  if (differ(agreed.timeline, now.timeline)) return decidePromotion(reading, standby)
  if (reading.isPutBack) return { kind: 'found', detail: putBack }
  return reading.isEmpty && !reading.isByPerson ? unlessNamed(named, { kind: 'stands' }) : { kind: 'stands' }
}

export const hasOperatorAgreedSince = (
  { agreedAtMs, isByPerson }: HistoryReading,
  memory: RememberedHistory,
): boolean => isByPerson && agreedAtMs > memory.agreedAtMs

function findObjection(view: HistoryReading, memory: RememberedHistory | null): string | null {
  if (memory === null || hasOperatorAgreedSince(view, memory)) return null
  if (!view.hasLastClaim) return 'a record that a daemon had claimed is missing or not marked as sent'
  if (view.agreedAtMs < memory.agreedAtMs)
    return 'the last acceptance of the ledger’s history, which a daemon had read, is missing'
  if (!view.isPastSeen && memory.timeline !== null && memory.timeline === view.now.timeline)
    return 'the server’s write-ahead log is shorter than it was'
  return null
}

function otherDatabase(agreed: HistoryIdentity, now: HistoryIdentity): string | null {
  if (differ(agreed.systemId, now.systemId))
    return `the ledger is in a different cluster (system identifier ${now.systemId}, before ${agreed.systemId}): a dump was restored, or the ledger was moved`
  if (agreed.databaseOid !== now.databaseOid)
    return `the ledger is in a different database of the cluster (oid ${now.databaseOid}, before ${agreed.databaseOid}): a dump was restored, or the database was copied`
  if (agreed.ledgerOid !== now.ledgerOid)
    return `the ledger’s tables were created again (oid ${now.ledgerOid}, before ${agreed.ledgerOid}): a dump was restored`
  return null
}

function unlessNamed(named: RowSearchResult, verdict: DataLossVerdict): DataLossVerdict {
  if (named.kind === 'none') return verdict
  if (named.kind === 'unknown') return { kind: 'asks' }
  return {
    kind: 'found',
    detail: `the ledger has no records, but row ${named.outboxId} of the outbox names a transaction: a backup from before the first record was restored, or the ledger was created again. If the rows are older than outboxd, \`outboxd recover --as new\` sends those that wait and name no transaction. To skip them, first run \`outboxd adopt --start id:N\` with the first row to send`,
  }
}

const putBack = 'rows of a backup were restored into existing tables, or outboxd.history was changed by hand'

function decidePromotion(
  { agreed, now, markedForMs, hasTarget }: HistoryReading,
  standby: LedgerStandby,
): DataLossVerdict {
  const what = `the server’s timeline is ${now.timeline}, before ${agreed.timeline}`
  if (hasTarget) return { kind: 'found', detail: `${what}: a backup was recovered to a point in time` }
  if (standby !== 'synchronous')
    return { kind: 'found', detail: `${what}: a standby was promoted, or a backup recovered` }
  if (Number(now.timeline) < Number(agreed.timeline))
    return { kind: 'found', detail: `${what}: an earlier server has come back` }
  if (markedForMs > promotedWithinMs)
    return {
      kind: 'found',
      detail: `${what}, and no daemon had looked at the ledger for more than ${promotedWithinMs / 60_000} minutes: a backup may have been recovered`,
    }
  return { kind: 'agrees', isPromoted: true }
}

export const isHistoryIdentityChanged = (agreed: HistoryIdentity, now: HistoryIdentity): boolean =>
  otherDatabase(agreed, now) !== null || differ(agreed.timeline, now.timeline)

/** Unknown values count as equal. */
const differ = <T>(a: T | null, b: T | null): boolean => a !== null && b !== null && a !== b
