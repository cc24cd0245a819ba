import { isDeepStrictEqual } from 'node:util'
import { readOrSetSettings } from '../ledger/settings.ts'
import {
  countReplaysAndDiscardsOnce,
  type LedgerSnapshot,
  readLastEventId,
  readLedgerSnapshot,
} from '../ledger/snapshot.ts'
import { type OutboxBacklog, readBacklog } from '../outbox/backlog.ts'
import { LockedRowWatch } from '../outbox/lockedRows.ts'
import type { Database } from '../postgres/database.ts'
import type { DaemonContext } from './context.ts'
import type { Heartbeat } from './heartbeat.ts'
import { createPeriodicPart, createStepRound, type LoopPart } from './loop.ts'
import type { PollPlanner } from './pollPlanner.ts'

const everyMs = 10_000
/** For what changes rarely: acts of operators and locked rows. */
const rareEveryMs = 30_000
/** Counting up to this many rows takes a few milliseconds. */
const countedAlwaysMax = 40_000
const countEveryMaxMs = 600_000

/** With this wait, counting costs at most a thousandth of a core. */
export function backlogCountIntervalMs(rowsWaiting: number): number {
  return Math.min(countEveryMaxMs, everyMs * Math.max(1, rowsWaiting / countedAlwaysMax))
}

export function createDatabaseObservation(
  { clock, metrics, telemetry, databases, beginAnew }: DaemonContext,
  {
    heartbeat,
    planner,
  }: { heartbeat: Pick<Heartbeat, 'hasLedgersSettings'>; planner: Pick<PollPlanner, 'noteOutboxRowsWaiting'> },
): LoopPart {
  const { ledger, outbox, instance } = databases
  const lockedRows = new LockedRowWatch(outbox, clock.stopwatch())
  const elapsedMs = clock.stopwatch()
  let backlog: OutboxBacklog | null = null
  let countAtMs = Number.NEGATIVE_INFINITY
  let lastEventId: string | null = null
  let rareAtMs = Number.NEGATIVE_INFINITY

  async function followSettings(): Promise<void> {
    if (heartbeat.hasLedgersSettings && databases.differences === '') return
    const settings = await readOrSetSettings(ledger, instance)
    if (!isDeepStrictEqual(settings, databases.ledgerSettings)) beginAnew()
  }

  async function countBacklog(): Promise<OutboxBacklog> {
    const nowMs = elapsedMs()
    if (backlog !== null && nowMs < countAtMs) return backlog
    const counted = await readBacklog(outbox)
    // Subtracts half a round, because a round that starts a little early would otherwise skip the count.
    countAtMs = nowMs + backlogCountIntervalMs(counted.waiting) - everyMs / 2
    return counted
  }

  async function countActs(): Promise<void> {
    lastEventId ??= await readLastEventId(ledger)
    const { lastId, ...acts } = await countReplaysAndDiscardsOnce(ledger, lastEventId, instance.id)
    lastEventId = lastId
    telemetry.operatorActed(acts)
  }

  async function readSnapshot(): Promise<LedgerSnapshot> {
    try {
      const snapshot = await readLedgerSnapshot(ledger)
      metrics.databaseUp.set(1)
      return snapshot
    } catch (error) {
      metrics.databaseUp.set(Number(await isUp(ledger)))
      throw error
    }
  }

  async function observeRarely(): Promise<void> {
    if (elapsedMs() < rareAtMs) return
    await countActs()
    if (await databases.hasOwnSettings()) await lockedRows.runOnce()
    rareAtMs = elapsedMs() + rareEveryMs - everyMs / 2
  }

  async function observe(): Promise<void> {
    const snapshot = await readSnapshot()
    metrics.setSnapshot(toMetricsSnapshot(snapshot, backlog))
    backlog = await countBacklog()
    metrics.setSnapshot(toMetricsSnapshot(snapshot, backlog))
    planner.noteOutboxRowsWaiting(backlog.waiting)
    await observeRarely()
  }

  return createPeriodicPart(everyMs, createStepRound([followSettings, observe]))
}

const isUp = (db: Database): Promise<boolean> =>
  db.query('select').then(
    () => true,
    () => false,
  )

export function toMetricsSnapshot(ledger: LedgerSnapshot, outbox: OutboxBacklog | null) {
  const unsent = [ledger.oldestUnsentMs, outbox?.oldestMs ?? null].filter((ms) => ms !== null)
  return {
    ...ledger,
    pauses: ledger.pauses.map(({ reason }) => reason),
    outboxWaiting: outbox?.waiting ?? 0,
    oldestUnsentMs: unsent.length > 0 ? Math.min(...unsent) : null,
  }
}
