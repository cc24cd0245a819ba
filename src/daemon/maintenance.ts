import { isDeepStrictEqual } from 'node:util'
import cron from 'node-cron'
import { tidyRequests } from '../ledger/budget.ts'
import { moveTimesAfterClockSetBack } from '../ledger/clockSetBack.ts'
import { deleteStaleInstances, readOrphanedSubmissions, takeOverPolls } from '../ledger/instances.ts'
import { releaseUnblockedRecords } from '../ledger/keyOrder.ts'
import { type WrittenOutcomes, writeOutcomes } from '../ledger/outcomes.ts'
import { replaceProblems } from '../ledger/problems.ts'
import { tidyRequestCounts } from '../ledger/requestCounts.ts'
import { type PrunedCounts, toRetention } from '../ledger/retention.ts'
import { readOrSetSettings } from '../ledger/settings.ts'
import {
  countReplaysAndDiscardsOnce,
  type LedgerSnapshot,
  mergeStateCountDeltas,
  readLedgerSnapshot,
} from '../ledger/snapshot.ts'
import { findForeignStatusProblems, findStuckSubmissionProblems } from '../ledger/transactions.ts'
import type { Answer } from '../model/service.ts'
import type { PollClaim, Transition } from '../model/submission.ts'
import { type OutboxBacklog, readBacklog } from '../outbox/backlog.ts'
import { LockedRowWatch } from '../outbox/lockedRows.ts'
import { type PruneRoundResult, readPruneOverdueMs, runPruneRound } from '../outbox/prune.ts'
import { clearStaleProblems, TableSurveys } from '../outbox/survey.ts'
import { classifyDatabaseError, type Database, inTransaction } from '../postgres/database.ts'
import type { Attempts } from './attempts.ts'
import type { DaemonContext } from './context.ts'
import type { Dispatch } from './dispatch/dispatch.ts'
import { emptyBatch } from './dispatch/outcomeWriter.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { InstanceDatabases } from './instanceDatabases.ts'
import { createPeriodicPart, createStepRound, type LoopPart } from './loop.ts'
import type { PollPlanner } from './pollPlanner.ts'

/** The parts of the daemon that its maintenance asks. */
export interface MaintenanceParts {
  heartbeat: Pick<Heartbeat, 'isClockBack' | 'hasLedgersSettings'>
  dispatch: Pick<Dispatch, 'holds' | 'holdsPoll'>
  attempts: Pick<Attempts, 'interpretAnswer'>
  planner: Pick<PollPlanner, 'noteOutboxRowsWaiting'>
  onWritten(outcomes: WrittenOutcomes): void
  stopping: AbortSignal
}

export function createMaintenanceLoops(daemon: DaemonContext, parts: MaintenanceParts) {
  return {
    orphans: createOrphanRescue(daemon, parts),
    upkeep: createUpkeep(daemon, parts.stopping),
    survey: createSurvey(daemon, parts.stopping),
    prune: createPruning(daemon, parts.stopping),
    history: createHistoryWatch(daemon),
    observe: createDatabaseObservation(daemon, parts),
  } satisfies Record<string, LoopPart>
}

/** Bounds long rounds, because /livez reports a loop whose round takes 120 s. */
const roundMaxMs = 20_000

const rescueEveryMs = 30_000

/** A heartbeat wakes this round if an instance died or the database's clock was set back. */
function createOrphanRescue({ databases, telemetry, wakeups }: DaemonContext, parts: MaintenanceParts): LoopPart {
  const { ledger, queue, instance } = databases
  const isHeld = (poll: PollClaim) => parts.dispatch.holdsPoll(poll)
  const steps = [
    // First, because the database's clock decides which instances are dead.
    async () => {
      if (!parts.heartbeat.isClockBack) return
      await moveTimesAfterClockSetBack(ledger)
      parts.heartbeat.isClockBack = false
      wakeups.dispatch.wake()
    },
    async () => telemetry.orphansRescued(await rescueOrphans(databases, parts)),
    async () => {
      if ((await takeOverPolls(ledger, queue, { instanceId: instance.id, isHeld })) > 0) wakeups.dispatch.wake()
    },
  ]
  return createPeriodicPart(rescueEveryMs, createStepRound(steps))
}

const unknown = (detail: string): Answer => ({ kind: 'no-answer', sent: true, cause: 'network', detail, tookMs: 0 })

const died = unknown(
  'the instance that was sending the record died, or is suspended: then end its process, because it can still send',
)
const forgotten = unknown('the outcome of the attempt could not be written, or the ledger lost it')

/**
 * Applies UNCERTAIN_POLICY to records of dead instances, and to records that this instance claimed but no longer has in
 * flight. If a presumed dead instance wrote first, the fence keeps its outcome.
 *
 * @throws the first error, after the other records are written
 */
async function rescueOrphans(
  databases: InstanceDatabases,
  { dispatch, attempts, onWritten }: MaintenanceParts,
): Promise<number> {
  const { ledger, instance } = databases
  const orphaned = await readOrphanedSubmissions(ledger, instance.id, (each) => dispatch.holds(each))
  const transitions = orphaned.map(({ isOwn, ...submission }): Transition => {
    const { change, cause, message } = attempts.interpretAnswer(submission, isOwn ? forgotten : died).step
    return { submission, poll: null, change, cause, message, request: null }
  })
  let rescued = 0
  const failures: unknown[] = []
  for (const transition of transitions) {
    try {
      const outcomes = await writeOutcomes(databases, { ...emptyBatch, transitions: [transition] })
      onWritten(outcomes)
      rescued += outcomes.written.length
    } catch (error) {
      if (classifyDatabaseError(error, 'maintenance') === 'everyone') throw error
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
  return rescued
}

const upkeepEveryMs = 30_000

/** If the clock is set a week ahead, catching up takes 0.1 s. If it is set back, this work is only delayed. */
const hourly = '1 * * * *'

function createUpkeep({ config, databases, telemetry, wakeups }: DaemonContext, stopping: AbortSignal): LoopPart {
  const { ledger, queue, outbox, instance } = databases
  const { stuckAfterMs } = config
  const lockedRows = new LockedRowWatch(outbox)
  let lastEventId: string | null = null
  let lastKey = ''
  let isHourOver = true
  const schedule = cron.schedule(
    hourly,
    () => {
      isHourOver = true
    },
    { timezone: 'UTC', suppressMissedWarning: true, unref: true },
  )
  stopping.addEventListener('abort', () => void schedule.stop())
  const steps = [
    async () => {
      const round = await releaseUnblockedRecords(ledger, lastKey)
      lastKey = round.lastKey
      if (round.released > 0) wakeups.dispatch.wake()
    },
    () => tidyRequests(ledger),
    () => deleteStaleInstances(ledger),
    async () => {
      if (!isHourOver) return
      await tidyRequestCounts(ledger)
      telemetry.missingPollsInserted(await inTransaction(ledger, (db) => queue.insertMissing(db)))
      isHourOver = false
    },
    async () =>
      replaceProblems(
        ledger,
        'stuck_transaction',
        stuckAfterMs === null ? [] : await findStuckSubmissionProblems(ledger, stuckAfterMs),
      ),
    async () => replaceProblems(ledger, 'foreign_status', await findForeignStatusProblems(ledger)),
    () => mergeStateCountDeltas(ledger),
    async () => {
      const { lastId, ...acts } = await countReplaysAndDiscardsOnce(ledger, lastEventId, instance.id)
      lastEventId = lastId
      telemetry.operatorActed(acts)
    },
    async () => {
      if (await databases.hasOwnSettings()) await lockedRows.runOnce()
    },
  ]
  return createPeriodicPart(upkeepEveryMs, createStepRound(steps))
}

const surveyEveryMs = 3_600_000
const lookEveryMs = 30_000

function createSurvey({ clock, databases }: DaemonContext, stopping: AbortSignal): LoopPart {
  const { outbox } = databases
  const surveys = new TableSurveys(outbox)
  let sinceMs = () => Number.POSITIVE_INFINITY
  return {
    async runOnce() {
      await clearStaleProblems(outbox, () => databases.hasOwnSettings())
      if (sinceMs() < surveyEveryMs || !(await databases.hasOwnSettings())) return lookEveryMs
      if (!(await surveys.runOnce(() => !stopping.aborted))) return 0
      sinceMs = clock.stopwatch()
      return lookEveryMs
    },
  }
}

const pruneAgainMs: Readonly<Record<PruneRoundResult, number>> = { begun: 0, elsewhere: 60_000, through: 300_000 }
const pruneBehindMs = 86_400_000

function createPruning({ clock, databases, metrics, telemetry }: DaemonContext, stopping: AbortSignal): LoopPart {
  const { ledger, outbox, ownSettings } = databases
  return {
    async runOnce() {
      if (!(await databases.hasOwnSettings())) return pruneAgainMs.elsewhere
      const elapsedMs = clock.stopwatch()
      const goOn = () => !stopping.aborted && elapsedMs() < roundMaxMs
      let done: PrunedCounts | null = null
      const onProgress = (pruned: PrunedCounts) => {
        done = pruned
      }
      const end = await runPruneRound(outbox, { settings: ownSettings, turn: 'try', goOn, onProgress }).finally(
        () => done !== null && telemetry.pruned(done),
      )
      const overdueMs = await readPruneOverdueMs(outbox, toRetention(ownSettings))
      metrics.pruneOverdue.set(overdueMs)
      const days = Math.floor(overdueMs / 86_400_000)
      const detail = `the oldest record should have been deleted or emptied ${days} ${days === 1 ? 'day' : 'days'} ago (RETENTION_DAYS, RETENTION_PAYLOAD_DAYS)`
      const problems = overdueMs > pruneBehindMs ? [{ subject: '', detail, retryInMs: null }] : []
      await replaceProblems(ledger, 'prune_behind', problems)
      return pruneAgainMs[end]
    },
  }
}

function createHistoryWatch({ log, databases, wakeups }: DaemonContext): LoopPart {
  return createPeriodicPart(1_000, async () => {
    const change = await databases.history.runOnce()
    if (change.kind === 'lost')
      log.error(
        `ledger may have lost committed data: ${change.detail}. Nothing is sent. \`outboxd recover --dry-run\` shows what to settle`,
      )
    if (change.kind !== 'promoted') return
    log.warn('ledger’s standby was promoted: sending goes on, because LEDGER_STANDBY is synchronous')
    wakeups.dispatch.wake()
  })
}

const observeEveryMs = 10_000
/** Counting up to this many rows takes a few milliseconds. */
const countedAlwaysMax = 40_000
const countEveryMaxMs = 600_000

/** With this wait, counting costs at most a thousandth of a core. */
export function backlogCountIntervalMs(rowsWaiting: number): number {
  return Math.min(countEveryMaxMs, observeEveryMs * Math.max(1, rowsWaiting / countedAlwaysMax))
}

/** Follows the ledger's settings, and reads what metrics show. */
export function createDatabaseObservation(
  { clock, metrics, databases, beginAnew }: DaemonContext,
  { heartbeat, planner }: { heartbeat: Pick<Heartbeat, 'hasLedgersSettings'>; planner: MaintenanceParts['planner'] },
): LoopPart {
  const { ledger, outbox, instance } = databases
  const elapsedMs = clock.stopwatch()
  let backlog: OutboxBacklog | null = null
  let countAtMs = Number.NEGATIVE_INFINITY

  async function countBacklog(): Promise<OutboxBacklog> {
    const nowMs = elapsedMs()
    if (backlog !== null && nowMs < countAtMs) return backlog
    const counted = await readBacklog(outbox)
    // Subtracts half a round, because a round that starts a little early would otherwise skip the count.
    countAtMs = nowMs + backlogCountIntervalMs(counted.waiting) - observeEveryMs / 2
    return counted
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

  const steps = [
    async () => {
      if (heartbeat.hasLedgersSettings && databases.differences === '') return
      const settings = await readOrSetSettings(ledger, instance)
      if (!isDeepStrictEqual(settings, databases.ledgerSettings)) beginAnew()
    },
    async () => {
      const snapshot = await readSnapshot()
      metrics.setSnapshot(toMetricsSnapshot(snapshot, backlog))
      backlog = await countBacklog()
      metrics.setSnapshot(toMetricsSnapshot(snapshot, backlog))
      planner.noteOutboxRowsWaiting(backlog.waiting)
    },
  ]
  return createPeriodicPart(observeEveryMs, createStepRound(steps))
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
