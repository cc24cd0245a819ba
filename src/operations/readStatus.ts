import { setTimeout } from 'node:timers/promises'
import { readServedOutbox, type StartPosition } from '../ledger/binding.ts'
import { isStandbyAwaited } from '../ledger/history/history.ts'
import { findReadOnlyCause, type ReadOnlyCause } from '../ledger/operator/readServer.ts'
import { readProblems } from '../ledger/problems.ts'
import { type RecentRequestCounts, readRecentRequestCounts } from '../ledger/requestCounts.ts'
import { readSettings } from '../ledger/settings.ts'
import { type DaemonActivity, type LedgerSnapshot, readDaemonActivity, readLedgerSnapshot } from '../ledger/snapshot.ts'
import type { Problem, ProblemKind } from '../model/problem.ts'
import { type OutboxBacklog, readBacklog } from '../outbox/backlog.ts'
import { countRowsBeforeStart, type RowsBeforeStart } from '../outbox/startPosition.ts'
import type { Database } from '../postgres/database.ts'
import { type LockingSession, readLockingSessions } from '../postgres/locks.ts'
import { daemonSessionNames } from '../postgres/sessionSettings.ts'
import { isLockTimeout } from '../postgres/sqlState.ts'
import { type Databases, readSessionsBlockingOutboxReads, withOutbox } from './databases.ts'
import { explainError } from './explainError.ts'
import { findOutboxFileDifferences } from './ledgerFiles.ts'

export interface LedgerStatus extends LedgerSnapshot, DaemonActivity {
  /** The name of the installation; '' if it has none. */
  installation: string
  standing: Problem[]
  start: StartPosition
  /** Null if the database takes writes. */
  readOnly: ReadOnlyCause | null
  recent: RecentRequestCounts
  heldUpBy: LockingSession[]
  isStandbyAwaited: boolean
}

export type OutboxStatus =
  | {
      kind: 'read'
      outbox: OutboxBacklog
      rowsBeforeStart: RowsBeforeStart | null
      /** In what outbox.yaml differs from that of the daemons; '' if in nothing. */
      differences: string
    }
  | { kind: 'unreadable'; problem: string }
  | { kind: 'locked'; by: LockingSession[] }
  | { kind: 'awaited' }

export interface CombinedStatus extends LedgerStatus {
  outbox: OutboxStatus
  /** Creation of the oldest record that is not accepted. */
  oldestMs: number | null
  backlog: Backlog | null
  /** What must happen before the backlog shrinks, as words that follow "after"; null if daemons send. */
  backlogStandsUntil: string | null
  /** True if rows of the outbox may wait for something whose end is unknown, so that the estimate does not hold for them. */
  mayRowsWaitLonger: boolean
  throughAtMs: number | null
}

export async function readLedgerStatus({ ledger }: Pick<Databases, 'ledger'>): Promise<LedgerStatus> {
  const [settings, snapshot, activity, standing, { start }, readOnly, recent, standbyAwaited] = await Promise.all([
    readSettings(ledger),
    readLedgerSnapshot(ledger),
    readDaemonActivity(ledger),
    readProblems(ledger),
    readServedOutbox(ledger),
    findReadOnlyCause(ledger),
    readRecentRequestCounts(ledger),
    isStandbyAwaited(ledger),
  ])
  const heldUpBy = await readSessionsHoldingUpDaemons(ledger, snapshot)
  const installation = settings?.INSTALLATION_NAME ?? ''
  const facts = { installation, standing, start, readOnly, recent, heldUpBy, isStandbyAwaited: standbyAwaited }
  return { ...activity, ...snapshot, ...facts }
}

/** Finds the sessions whose locks keep a connected daemon from writing its heartbeat. */
export async function readSessionsHoldingUpDaemons(
  ledger: Database,
  { daemonConnected, instances }: LedgerSnapshot,
): Promise<LockingSession[]> {
  return daemonConnected && instances.length === 0 ? readLockingSessions(ledger, daemonSessionNames.heartbeat) : []
}

/** Reads the outbox. If a lock prevents this, names the lock's holders within two seconds. Never throws. */
export async function readOutboxStatus(databases: Databases): Promise<OutboxStatus> {
  const watch = new AbortController()
  try {
    return await Promise.race([askOutbox(databases), untilLocked(databases, watch.signal)])
  } finally {
    watch.abort()
  }
}

/** @param patient tries once more after a lock timeout, so that `untilLocked` has time to find the lock's holder */
async function askOutbox(databases: Databases, patient = true): Promise<OutboxStatus> {
  try {
    const [outbox, rowsBeforeStart, differences] = await Promise.all([
      withOutbox(databases, readBacklog),
      withOutbox(databases, countRowsBeforeStart).catch(() => null),
      findOutboxFileDifferences(databases),
    ])
    return { kind: 'read', outbox, rowsBeforeStart, differences }
  } catch (error) {
    if (patient && error instanceof Error && isLockTimeout(error.cause)) return askOutbox(databases, false)
    return { kind: 'unreadable', problem: explainError(error).message }
  }
}

const lookEveryMs = 300

/** Returns when two looks in a row find a lock, because a short lock does not matter. */
async function untilLocked(databases: Databases, signal: AbortSignal): Promise<OutboxStatus> {
  for (let wasLocked = false; ; ) {
    await setTimeout(lookEveryMs, undefined, { signal })
    const by = await readSessionsBlockingOutboxReads(databases).catch(() => [])
    if (wasLocked && by.length > 0) return { kind: 'locked', by }
    wasLocked = by.length > 0
  }
}

export function combineStatuses(ledger: LedgerStatus, outboxStatus: OutboxStatus): CombinedStatus {
  const { nowMs, submissions, rateCapacity: capacity } = ledger
  const outbox = outboxStatus.kind === 'read' ? outboxStatus.outbox : null
  const unsent = [ledger.oldestUnsentMs, outbox?.oldestMs ?? null].filter((ms) => ms !== null)
  const oldestMs = unsent.length > 0 ? Math.min(...unsent) : null
  const backlog =
    outbox === null || capacity === 0
      ? null
      : estimateBacklog({
          toSend: outbox.waiting + submissions.queued + submissions.sending - ledger.probing - ledger.heldForPerson,
          tracked: submissions.accepted + ledger.probing,
          pollsPerRecord: ledger.pollsPerRecord,
          capacity: capacity > ledger.rateHeldBack ? capacity - ledger.rateHeldBack : capacity,
          windowMs: ledger.rateWindowMs,
          lastDueInMs: ledger.lastDueMs === null ? 0 : ledger.lastDueMs - nowMs,
        })
  const backlogStandsUntil = standsUntil(ledger)
  const isHeldUp = ledger.heldForPerson > 0 || ledger.standing.some(({ kind }) => problemsOfWaitingRows.has(kind))
  const mayRowsWaitLonger = outbox !== null && outbox.waiting > 0 && isHeldUp
  const hasEnd = backlogStandsUntil === null && !mayRowsWaitLonger
  return {
    ...ledger,
    outbox: outboxStatus,
    oldestMs,
    backlog,
    backlogStandsUntil,
    mayRowsWaitLonger,
    throughAtMs: backlog && hasEnd ? backlogClearedAtMs(backlog, ledger) : null,
  }
}

/** Later rows of the same key wait, too. */
const problemsOfWaitingRows: ReadonlySet<ProblemKind> = new Set([
  'row_skipped',
  'row_locked',
  'row_conflict',
  'source_failing',
])

function standsUntil({ instances, standing, rateHeldBack, rateCapacity }: LedgerStatus): string | null {
  if (instances.length === 0) return 'a daemon starts'
  if (standing.some(({ kind }) => kind === 'loop_failing')) return 'the failing part of the daemon works again'
  return rateHeldBack > 0 && rateHeldBack >= rateCapacity ? 'the other client leaves requests' : null
}

export interface Backlog {
  records: number
  durationMs: number
  pollsPerRecord: number
}

/** Assumed polls per record, until the first record has completed. */
const pollsAssumed = 1

/**
 * Estimates how long the backlog takes at the rate limit. A waiting record costs one request and its polls, a tracked
 * record only its polls.
 */
export function estimateBacklog(load: {
  toSend: number
  tracked: number
  pollsPerRecord: number | null
  capacity: number
  windowMs: number
  lastDueInMs: number
}): Backlog {
  const pollsPerRecord = load.pollsPerRecord ?? pollsAssumed
  const requests = load.toSend * (1 + pollsPerRecord) + load.tracked * pollsPerRecord
  const durationMs = Math.max((requests / load.capacity) * load.windowMs, load.lastDueInMs)
  return { records: load.toSend + load.tracked, pollsPerRecord, durationMs }
}

/** @returns null if nothing waits, or if a pause has no known end */
function backlogClearedAtMs(
  backlog: Backlog,
  { pauses, nextFreeMs, nowMs }: Pick<LedgerStatus, 'pauses' | 'nextFreeMs' | 'nowMs'>,
): number | null {
  if (backlog.records === 0) return null
  const ends = pauses.map(({ untilMs }) => untilMs)
  if (ends.includes(null)) return null
  return Math.max(nowMs, nextFreeMs ?? nowMs, ...ends.filter((ms) => ms !== null)) + backlog.durationMs
}
