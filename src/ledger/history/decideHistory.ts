/** By what a server's history of the ledger is told from another; null: the server does not let our role know. */
export interface HistoryIdentity {
  systemId: string | null
  timeline: number | null
  databaseOid: number
  ledgerOid: number
}

/** The ledger's history as one look finds it. Times by the database's clock. */
export interface HistoryView {
  /** What the daemons have agreed to. */
  agreed: HistoryIdentity
  /** When they did, epoch milliseconds. */
  agreedAtMs: number
  isByPerson: boolean
  now: HistoryIdentity
  /** Up to where the log is safe against a crash; null: our role may not know. */
  safeLsn: string | null
  /** It is not behind the place that the ledger itself has noted. */
  isPastMark: boolean
  /** None of us has written the history's row, or the last event that it knows is gone: rows were put back into the tables that stand. */
  isPutBack: boolean
  /** It was recovered to a point in time, and not to the end of what there was. */
  hasTarget: boolean
  /** For how long claims are known to wait for a synchronous standby; negative: since when that is over; null: never. */
  waitsForMs: number | null
  /** Whether a COMMIT of ours waits for a synchronous standby now. */
  isSynchronous: boolean
  /** It is time to say again that the history was found as it was agreed to. */
  isMarkDue: boolean
  /** For how long it has been known that the history is another; null where it is not. */
  foundForMs: number | null
  mayGoOn: boolean
  /** The last record that this instance is known to have claimed stands there, as sent as it was; true where there is none. */
  hasLastClaim: boolean
  /** The log is no shorter than this instance has seen it; true where it has seen none. */
  isPastSeen: boolean
  /** The server has recovered since it started, as a standby that is promoted has. */
  hasRecovered: boolean
  /** Its recovery came as far as this instance had seen the log some seconds before its last look; null: nobody can tell. */
  reachesSettled: boolean | null
  /** No record was ever captured in it and no request made. */
  isUnused: boolean
  /** It has no records. */
  isEmpty: boolean
  /** Everybody pauses for what was found, or until nobody relies on a standby any more. */
  isPaused: boolean
}

/** What an instance remembers of the ledger, beside the ledger. */
export interface HistoryMemory {
  agreedAtMs: number
  timeline: number | null
  /** It has looked all the time since it found the history as it was agreed to: no claim of others before it can be new to it. */
  hasWatched: boolean
}

/** Whether a row of the outbox names a transaction, which in a ledger without records nobody has told it. */
export type NamedRow = { kind: 'unknown' } | { kind: 'none' } | { kind: 'named'; outboxId: string }

export type HistoryVerdict =
  /** It is as it was agreed to: what has been committed is there. */
  | { kind: 'stands' }
  /** It is another, in which nothing has happened yet: a copy of a template, say. */
  | { kind: 'new' }
  /** It has no records, and what the outbox’s rows say of it is not known yet. */
  | { kind: 'asks' }
  /** It is another, or went back. */
  | { kind: 'found'; detail: string; mayGoOn: boolean }
  /** That has been found, and a person, or some more seconds, are waited for. */
  | { kind: 'waits' }
  /** Every claim had been waited for by a synchronous standby, and no instance knows better. */
  | { kind: 'goes-on' }

/** A daemon that has lived through a failover and is connected again has looked by then. */
const vouchedMs = 30_000

/** Two signs of life, and the time that it takes to come to another server: so long living instances have to say that they know better. */
export const objectionMs = 6_000

/**
 * Whether the ledger is the one in which everything was committed that was claimed.
 *
 * A standby that was promoted has another timeline. Whether it lacks the last commits, it cannot say itself; but while COMMITs wait for a
 * synchronous standby, daemons say in the ledger until when they will certainly do so, and nobody claims otherwise before that is
 * over. Where that has come to the new server and is not over, every claim has come, too: if it was a synchronous standby. A backup that was
 * recovered to the end of the archive, and a standby that lagged behind, look the same. So it goes on only on the word of an instance
 * that has looked until the server was gone, and has seen the log no longer than the new one had it.
 *
 * A ledger without records is a new one, or was put back to what it was before its first record. Then rows name transactions.
 *
 * @param memory what this instance remembers; null: nothing, or a person has agreed to what there is since
 */
export function decideHistory(view: HistoryView, memory: HistoryMemory | null, named: NamedRow): HistoryVerdict {
  const knowsBetter = objection(view, memory)
  if (view.foundForMs !== null) {
    if (!view.mayGoOn) return { kind: 'waits' }
    const since = knowsBetter ?? otherDatabase(view.agreed, view.now) ?? (view.hasTarget ? recoveredToTarget : null)
    if (since !== null) return { kind: 'found', detail: since, mayGoOn: false }
    if (view.foundForMs >= objectionMs && mayVouch(view, memory)) return { kind: 'goes-on' }
    return view.foundForMs < vouchedMs ? { kind: 'waits' } : { kind: 'found', detail: unwatched, mayGoOn: false }
  }
  const { agreed, now } = view
  const other = otherDatabase(agreed, now)
  if (other !== null && view.isUnused && knowsBetter === null) return unlessNamed(named, { kind: 'new' })
  if (other !== null) return { kind: 'found', detail: other, mayGoOn: false }
  if (knowsBetter !== null) return { kind: 'found', detail: knowsBetter, mayGoOn: false }
  if (differ(agreed.timeline, now.timeline)) return promoted(view)
  if (view.isPutBack) return { kind: 'found', detail: putBack, mayGoOn: false }
  if (!view.isPastMark)
    return {
      kind: 'found',
      detail: 'the server’s write-ahead log is shorter than the ledger in it says',
      mayGoOn: false,
    }
  return view.isEmpty && !view.isByPerson ? unlessNamed(named, { kind: 'stands' }) : { kind: 'stands' }
}

/** The same, of which what the outbox's rows say is asked only where it matters. */
export async function judgeHistory(
  view: HistoryView,
  memory: HistoryMemory | null,
  findNamed: () => Promise<NamedRow>,
): Promise<HistoryVerdict> {
  const verdict = decideHistory(view, memory, { kind: 'unknown' })
  return verdict.kind === 'asks' ? decideHistory(view, memory, await findNamed()) : verdict
}

/**
 * For how long nothing may be claimed, though the history stands: others rely on it that claims wait for a standby, and they would not.
 * Null: it may.
 */
export const standbyMissedMs = ({ isSynchronous, waitsForMs }: HistoryView): number | null =>
  isSynchronous || waitsForMs === null || waitsForMs <= 0 ? null : waitsForMs

/** Whether what an instance remembers is of before a person agreed to what there is. */
export const isOutlived = ({ agreedAtMs, isByPerson }: HistoryView, memory: HistoryMemory): boolean =>
  isByPerson && agreedAtMs > memory.agreedAtMs

function objection(view: HistoryView, memory: HistoryMemory | null): string | null {
  if (memory === null || isOutlived(view, memory)) return null
  if (!view.hasLastClaim) return 'it does not have a record as sent that a daemon has claimed'
  if (view.agreedAtMs < memory.agreedAtMs) return 'it does not know what was agreed to last about its history'
  if (view.reachesSettled === false && memory.timeline !== view.now.timeline)
    return 'the log of the server that was promoted ended before what a daemon had seen'
  if (!view.isPastSeen && memory.timeline !== null && memory.timeline === view.now.timeline)
    return 'the server’s write-ahead log is shorter than a daemon has seen it'
  return null
}

const mayVouch = ({ agreed, reachesSettled }: HistoryView, memory: HistoryMemory | null): boolean =>
  memory?.hasWatched === true && memory.timeline === agreed.timeline && reachesSettled === true

const unwatched = 'a server was promoted, and no daemon has lived through it that could say that nothing is missing'

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
  const detail = `it has no records, and row ${named.outboxId} of the outbox names a transaction: a backup of before the first record was restored, or the ledger was made anew (are the rows of before outboxd: outboxd recover --as new sends those that wait and name none; where it is not to, outboxd adopt --start id:N first, the first row that it is to send)`
  return { kind: 'found', detail, mayGoOn: false }
}

const putBack = 'somebody has put rows of a backup back into the tables that stood, or changed outboxd.history by hand'

const recoveredToTarget = 'a backup was recovered to a point in time'

function promoted({ agreed, now, waitsForMs, hasTarget, hasRecovered }: HistoryView): HistoryVerdict {
  const what = `the server’s timeline is ${now.timeline}, before ${agreed.timeline}: ${
    hasTarget ? recoveredToTarget : 'a standby was promoted, or a backup recovered'
  }`
  const isLater = now.timeline !== null && agreed.timeline !== null && now.timeline > agreed.timeline
  const mayGoOn = isLater && hasRecovered && !hasTarget && waitsForMs !== null && waitsForMs > 0
  return { kind: 'found', detail: what, mayGoOn }
}

/** What our role may not know is no difference. */
const differ = <T>(a: T | null, b: T | null): boolean => a !== null && b !== null && a !== b
