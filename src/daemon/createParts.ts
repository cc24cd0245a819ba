import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { boundText, textMax } from '../boundText.ts'
import { forgetSkipped, readAgenda, skipRows, withCaptureLock } from '../ledger/capture.ts'
import { answerReload, publishTypes, writeHeartbeat } from '../ledger/instances.ts'
import type { WrittenOutcomes } from '../ledger/outcomes.ts'
import { tellProblems } from '../ledger/problems.ts'
import { movePolls, readPlannedPolls } from '../ledger/queue.ts'
import { readDueReports, readReports, renewReports, writeReports } from '../ledger/reports.ts'
import { assertService } from '../ledger/servedService.ts'
import { readProcessingTimes } from '../ledger/snapshot.ts'
import { fieldFaults, mapOutboxRecord } from '../mapping/mapRecord.ts'
import type { ClaimedRows } from '../model.ts'
import type { LoopName } from '../observe/metricRows.ts'
import { showError } from '../observe/redact.ts'
import { claimRow, claimRows } from '../outbox/claim.ts'
import { hasNew } from '../outbox/rows.ts'
import { tellRows } from '../outbox/tellRows.ts'
import { blameFor, inTransaction } from '../postgres/database.ts'
import { readLockingSessions } from '../postgres/locks.ts'
import { daemonSessions } from '../postgres/sessionSettings.ts'
import { type CaptureDeps, createCaptureRounds } from './capture/capture.ts'
import { createSleep } from './capture/sleep.ts'
import type { Fault } from './capture/take.ts'
import type { DaemonContext } from './context.ts'
import { createDispatch, type Dispatch } from './createDispatch.ts'
import {
  createHeartbeat,
  createProblemTelling,
  createReloadAnswering,
  credentialsProblem,
  filesProblem,
  type Heartbeat,
  instanceProblems,
  type ProblemTelling,
  waitsLong,
} from './heartbeat.ts'
import type { Part } from './loop.ts'
import { createMaintenance } from './maintenance.ts'
import { createReporting, type Reporting } from './report/report.ts'
import { createLearning, createPollPlanner, type PollPlanner } from './track/pollPlanner.ts'

/** What the daemon is made of. */
export interface Parts {
  /** What each loop does again and again. */
  rounds: Record<LoopName, Part>
  dispatch: Dispatch
  problems: ProblemTelling
  /** Aborted when the daemon stops: rounds that take long end. */
  stopping: AbortController
}

/** Puts the parts together, first those that others are given. Decides nothing. */
export function createParts(daemon: DaemonContext): Parts {
  const { config, clock, telemetry } = daemon
  const { requests, windowMs } = config.rateLimit
  const planner = createPollPlanner(windowMs, requests, Math.random)
  const learning = learningOf(daemon, planner)
  const report = reportingOf(daemon)
  const heartbeat = heartbeatOf(daemon)
  const onWritten = (outcomes: WrittenOutcomes) => {
    telemetry.outcomesWritten(outcomes)
    learning.onWritten(outcomes.written)
    report.onWritten(outcomes.written)
  }
  let waiting = 0
  const outboxWaiting = () => waiting
  const { mayClaim } = heartbeat
  const dispatch = createDispatch(daemon, { planner, mayClaim, outboxWaiting, onWritten })
  const problems = problemTellingOf(daemon, dispatch)
  const stopping = new AbortController()
  const maintenance = createMaintenance(daemon, {
    dispatch,
    onWritten,
    onBacklog(rows) {
      waiting = rows
    },
    stopping: stopping.signal,
  })
  // With each beat the instance's problems are written; the next beat does not wait for that.
  const beatAndTell = { runOnce: () => heartbeat.runOnce().finally(() => void problems.runOnce()) }
  const capture = createCaptureRounds({
    capture: captureDeps(daemon),
    sleep: sleepOf(daemon),
    publishTypes: (types) => publishTypes(daemon.databases.ledger, daemon.databases.instance.id, types),
    elapsedMs: clock.stopwatch(),
    random: Math.random,
  })
  return {
    rounds: { capture, dispatch, report, heartbeat: beatAndTell, schedule: learning, ...maintenance },
    dispatch,
    problems,
    stopping,
  }
}

function sleepOf({ clock, databases: { listener, outbox }, wakeups }: DaemonContext) {
  return createSleep({
    mark: async () => (await listener?.mark()) ?? 'unavailable',
    isMarked: () => listener?.isMarked() ?? false,
    unmark: () => listener?.unmark(),
    hasNew: () => hasNew(outbox),
    wake: wakeups.capture.wake,
    elapsedMs: clock.stopwatch(),
  })
}

function captureDeps({ clock, config, databases, mappings, log, telemetry, wakeups }: DaemonContext): CaptureDeps {
  const { ledger, outbox } = databases
  return {
    windowMax: config.captureWindow,
    knownTypes: () => [...mappings().keys()].sort(),
    elapsedMs: clock.stopwatch(),
    claim: (request) => databases.whileServing(() => claimRows(outbox, request), noRows),
    claimOne: (outboxId) => databases.whileServing(() => claimRow(outbox, outboxId), noRows),
    withLock: (work) => withCaptureLock(databases, work),
    async readAgenda() {
      const { served, ...agenda } = await readAgenda(ledger)
      return { ...agenda, hasNew: () => hasNew(outbox, served) }
    },
    skip: (rows) => skipRows(ledger, rows),
    forget: (outboxId) => forgetSkipped(ledger, outboxId),
    async tellLater(outboxIds) {
      await renewReports(ledger, outboxIds)
      wakeups.report.wake()
    },
    map(record, id) {
      const mapped = mapOutboxRecord(mappings(), record, id)
      return mapped.kind === 'mapped' ? mapped : { ...mapped, fieldErrors: fieldFaults(mapped.errors) }
    },
    newId: uuidv7,
    newKey: randomUUID,
    faultOf,
    onCaptured(records) {
      telemetry.captured(records)
      wakeups.dispatch.wake()
    },
    onBatchFailed: (count, error) =>
      log.warn('a batch of rows could not be captured; it is done again in smaller ones', { count, error }),
    onRowRejected: (outboxId, error) => log.warn('a row could not be captured; it is rejected', { outboxId, error }),
    onRowSkipped: (outboxId, error) => log.error('a row is put off and tried again later', { outboxId, error }),
  }
}

/** What a daemon claims while it does not serve the outbox. */
const noRows: ClaimedRows = {
  outboxIds: [],
  leftTypes: [],
  isRemembered: false,
  read: async () => [],
  mark: async () => [],
  async [Symbol.asyncDispose]() {},
}

function reportingOf({ clock, databases, telemetry, wakeups }: DaemonContext): Reporting {
  const { ledger, outbox } = databases
  return createReporting({
    stopwatch: clock.stopwatch,
    readDue: (limits) => readDueReports(ledger, limits),
    tell: (due) =>
      databases.whileServing(() => tellRows(outbox, () => readReports(databases, due)), { kind: 'busy' as const }),
    async write(told) {
      await writeReports(ledger, told)
      telemetry.reported(told)
    },
    wake: wakeups.report.wake,
  })
}

function learningOf({ config, databases: { ledger, queue }, wakeups }: DaemonContext, planner: PollPlanner) {
  return createLearning({
    planner,
    windowMs: config.rateLimit.windowMs,
    readProcessingTimes: (limit) => readProcessingTimes(ledger, limit),
    readPlannedPolls: (limit) => readPlannedPolls(ledger, limit),
    movePolls: (moves) => inTransaction(ledger, (db) => movePolls(db, queue, moves)),
    onMoved: wakeups.dispatch.wake,
  })
}

function heartbeatOf({ clock, config, databases, files, log }: DaemonContext): Heartbeat {
  const { heartbeats, instance } = databases
  const reloads = createReloadAnswering({
    reload: files.reload,
    answer: (answer) => answerReload(heartbeats, instance.id, answer),
    onFailed: (error) =>
      log.warn('a reload that was asked for could not be answered; it is asked for again', { error }),
  })
  return createHeartbeat({
    clock,
    async beat() {
      const asked = await writeHeartbeat(heartbeats, instance)
      // An instance whose ledger belongs to another service takes on no more work.
      await assertService(heartbeats, config.service)
      return asked
    },
    onReloadAsked: reloads.asked,
  })
}

function problemTellingOf(daemon: DaemonContext, dispatch: Dispatch): ProblemTelling {
  const { clock, log, health, files, credentials } = daemon
  const { heartbeats, instance } = daemon.databases
  const { unwritten, lostClaims, starving } = dispatch
  return createProblemTelling({
    waitsLong: () => unwritten().some((outcome) => waitsLong(outcome, clock.nowMs())),
    readBlockers: async () => (await readLockingSessions(heartbeats, daemonSessions.work)).map(({ pid }) => pid),
    problems: (blockers) => [
      ...instanceProblems(
        health.failing(),
        lostClaims(),
        starving(),
        { unwritten: unwritten(), blockers },
        clock.nowMs(),
      ),
      ...filesProblem(files.broken()),
      ...credentialsProblem(credentials.broken()),
    ],
    tell: (problems) => tellProblems(heartbeats, instance.id, problems),
    onFailed: (error) => log.warn('what is wrong could not be written; it is tried again', { error }),
  })
}

/**
 * What is known of an error: its words for the ledger, and the code alone for what everybody may read.
 *
 * @param isMark it was a mark that failed, which the table's own triggers may do
 */
export function faultOf(error: unknown, isMark: boolean): Fault {
  const { code, class: name } = showError(error)
  const message = error instanceof Error ? error.message : String(error)
  return {
    blame: blameFor(error, isMark ? 'mark' : 'claim'),
    code: code ?? name,
    message: boundText(message, textMax.message),
  }
}
