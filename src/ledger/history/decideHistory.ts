/** Tells one server's ledger from another; null: the server does not let our role know. */
export interface HistoryIdentity {
  systemId: string | null
  timeline: number | null
  databaseOid: number
  ledgerOid: number
}

/** The ledger's history as one look finds it, by the database's clock. */
export interface HistoryView {
  /** What the daemons have agreed to. */
  agreed: HistoryIdentity
  /** Epoch milliseconds. */
  agreedAtMs: number
  isByPerson: boolean
  now: HistoryIdentity
  /** How long ago a daemon found the history right. */
  markedForMs: number
  /** Up to where the write-ahead log survives a crash; null: our role may not know. */
  safeLsn: string | null
  /** Another program wrote the history's row, or the event that it names is gone: rows of a backup were put back. */
  isPutBack: boolean
  /** The database was recovered to a point in time, not to the end of the archive. */
  hasTarget: boolean
  /** A COMMIT of this session waits for a synchronous standby. */
  isSynchronous: boolean
  /** A daemon has found another history, and no person has agreed to it yet. */
  isFound: boolean
  /** The ledger has the last record that this instance claimed as sent; true if the instance claimed none. */
  hasLastClaim: boolean
  /** The log is at least as long as this instance has seen it. */
  isPastSeen: boolean
  /** No record was captured and no slot taken. */
  isUnused: boolean
  isEmpty: boolean
  /** The problem that COMMITs wait for no standby is open. */
  isStandbyMissed: boolean
}

/** What an instance remembers of the ledger. */
export interface HistoryMemory {
  agreedAtMs: number
  timeline: number | null
}

/** LEDGER_STANDBY: whether only a synchronous standby is ever promoted. */
export type LedgerStandby = 'none' | 'synchronous'

/**
 * Whether a row of the outbox names a transaction. If the ledger has no records, no daemon can have written that
 * name.
 */
export type NamedRow = { kind: 'unknown' } | { kind: 'none' } | { kind: 'named'; outboxId: string }

export type HistoryVerdict =
  /** All that was committed is there. */
  | { kind: 'stands' }
  /** The daemon may agree by itself: the ledger is unused, or a declared standby was promoted. */
  | { kind: 'agrees'; isPromoted: boolean }
  /** The ledger has no records, and the outbox's rows were not asked yet. */
  | { kind: 'asks' }
  | { kind: 'found'; detail: string }
  /** A change was found before and waits for a person. */
  | { kind: 'waits' }

/** A standby that is promoted later than this after a daemon's last mark may be a restored backup. */
const promotedWithinMs = 120_000

/**
 * Decides whether the ledger still has all that was committed.
 *
 * A promoted standby has a later timeline, and so has a backup that was recovered to the end of the archive.
 * Neither says whether it lacks the last commits. So sending goes on only if LEDGER_STANDBY declares that only a
 * synchronous standby is promoted. An instance that misses its own last claim stops all even then.
 *
 * A ledger without records is new, or a backup of before its first record. In the second case rows of the outbox
 * name transactions.
 */
export function decideHistory(
  view: HistoryView,
  { memory, standby, named }: { memory: HistoryMemory | null; standby: LedgerStandby; named: NamedRow },
): HistoryVerdict {
  if (view.isFound) return { kind: 'waits' }
  const { agreed, now } = view
  const other = otherDatabase(agreed, now)
  const objection = findObjection(view, memory)
  if (other !== null && objection === null && view.isUnused)
    return unlessNamed(named, { kind: 'agrees', isPromoted: false })
  const detail = other ?? objection
  if (detail !== null) return { kind: 'found', detail }
  if (differ(agreed.timeline, now.timeline)) return decidePromotion(view, standby)
  if (view.isPutBack) return { kind: 'found', detail: putBack }
  return view.isEmpty && !view.isByPerson ? unlessNamed(named, { kind: 'stands' }) : { kind: 'stands' }
}

/** Whether a person has agreed to the history since the instance last looked. */
export const isAgreedSince = ({ agreedAtMs, isByPerson }: HistoryView, memory: HistoryMemory): boolean =>
  isByPerson && agreedAtMs > memory.agreedAtMs

function findObjection(view: HistoryView, memory: HistoryMemory | null): string | null {
  if (memory === null || isAgreedSince(view, memory)) return null
  if (!view.hasLastClaim) return 'it does not have a record as sent that a daemon has claimed'
  if (view.agreedAtMs < memory.agreedAtMs) return 'it does not know what was agreed to last about its history'
  if (!view.isPastSeen && memory.timeline !== null && memory.timeline === view.now.timeline)
    return 'the server’s write-ahead log is shorter than a daemon has seen it'
  return null
}

function otherDatabase(agreed: HistoryIdentity, now: HistoryIdentity): string | null {
  if (differ(agreed.systemId, now.systemId))
    return `it is in another cluster (system identifier ${now.systemId}, before ${agreed.systemId}): a dump was restored, or it was moved`
  if (agreed.databaseOid !== now.databaseOid)
    return `it is in another database of the cluster (oid ${now.databaseOid}, before ${agreed.databaseOid}): a dump was restored, or it was copied`
  if (agreed.ledgerOid !== now.ledgerOid)
    return `its tables were made anew (oid ${now.ledgerOid}, before ${agreed.ledgerOid}): a dump was restored`
  return null
}

function unlessNamed(named: NamedRow, verdict: HistoryVerdict): HistoryVerdict {
  if (named.kind === 'none') return verdict
  if (named.kind === 'unknown') return { kind: 'asks' }
  return {
    kind: 'found',
    detail: `it has no records, and row ${named.outboxId} of the outbox names a transaction: a backup of before the first record was restored, or the ledger was made anew (are the rows of before outboxd: outboxd recover --as new sends those that wait and name none; where it is not to, outboxd adopt --start id:N first, the first row that it is to send)`,
  }
}

const putBack = 'somebody has put rows of a backup back into the tables that stood, or changed outboxd.history by hand'

function decidePromotion({ agreed, now, markedForMs, hasTarget }: HistoryView, standby: LedgerStandby): HistoryVerdict {
  const what = `the server’s timeline is ${now.timeline}, before ${agreed.timeline}`
  if (hasTarget) return { kind: 'found', detail: `${what}: a backup was recovered to a point in time` }
  if (standby !== 'synchronous')
    return { kind: 'found', detail: `${what}: a standby was promoted, or a backup recovered` }
  if (Number(now.timeline) < Number(agreed.timeline))
    return { kind: 'found', detail: `${what}: an earlier server has come back` }
  if (markedForMs > promotedWithinMs)
    return {
      kind: 'found',
      detail: `${what}, and a daemon last found the ledger right more than ${promotedWithinMs / 60_000} minutes ago: a backup may have been recovered`,
    }
  return { kind: 'agrees', isPromoted: true }
}

/** True if the ledger's tables are on another server, timeline or database, or were made anew. */
export const isMovedElsewhere = (agreed: HistoryIdentity, now: HistoryIdentity): boolean =>
  otherDatabase(agreed, now) !== null || differ(agreed.timeline, now.timeline)

/** What our role may not know counts as equal. */
const differ = <T>(a: T | null, b: T | null): boolean => a !== null && b !== null && a !== b
