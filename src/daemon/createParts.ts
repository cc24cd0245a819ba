import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { WrittenOutcomes } from '../ledger/outcomes.ts'
import { type Mappings, usedResource } from '../mapping/loadMappings.ts'
import { fieldFaults, mapOutboxRecord } from '../mapping/mapRecord.ts'
import type { Log } from '../observe/log.ts'
import type { LoopName } from '../observe/metricRows.ts'
import type { Metrics } from '../observe/metrics.ts'
import { createTelemetry, type Telemetry } from '../observe/telemetry.ts'
import { readBacklog, readHistory } from '../outbox/backlog.ts'
import { hasNew } from '../outbox/rows.ts'
import { blameFor } from '../postgres/database.ts'
import type { ServiceClient } from '../service/client.ts'
import type { CredentialsInForce } from '../service/credentialsInForce.ts'
import { outcomeOf } from '../service/readAnswer.ts'
import type { Store } from '../store/openStore.ts'
import { type CaptureDeps, type CaptureRounds, createCaptureRounds } from './capture/capture.ts'
import { captureProblems } from './capture/captureProblems.ts'
import { createSleep } from './capture/sleep.ts'
import { createDispatch, type Dispatch } from './createDispatch.ts'
import { faultOf } from './faultOf.ts'
import type { FilesInForce } from './filesInForce.ts'
import { createHeartbeat, type Heartbeat } from './heartbeat.ts'
import { credentialsProblem, filesProblem, instanceProblems, waitsLong } from './instanceProblems.ts'
import type { LoopHealth } from './loopHealth.ts'
import { type Chaining, createChaining } from './maintenance/chaining.ts'
import { type Comparing, createComparing } from './maintenance/comparing.ts'
import { createHistoryWatch, type HistoryWatch } from './maintenance/historyWatch.ts'
import { createObserving, type Observing } from './maintenance/observing.ts'
import { createOrphanRescue, type OrphanRescue } from './maintenance/orphanRescue.ts'
import { createOutboxHistory, type OutboxHistory } from './maintenance/outboxHistory.ts'
import { createProblemTelling, type ProblemTelling } from './maintenance/problemTelling.ts'
import { createPruning, type Pruning } from './maintenance/pruning.ts'
import { createReconciling, type Reconciling } from './maintenance/reconciling.ts'
import { createReloadAnswering, type ReloadAnswering } from './maintenance/reloadAnswering.ts'
import { createSumming, type Summing } from './maintenance/summing.ts'
import { createTouching, type Touching } from './maintenance/touching.ts'
import { createReporting, type Reporting } from './report/report.ts'
import { snapshotOf } from './snapshotOf.ts'
import { createLearning, createPollPlanner, type Learning } from './track/pollPlanner.ts'
import type { Wakeup } from './wakeup.ts'

export interface PartsDeps {
  config: Config
  /** The mappings in force; asked for each record. */
  mappings: () => Mappings
  files: Pick<FilesInForce, 'reload' | 'broken'>
  clock: Clock
  log: Log
  metrics: Metrics
  store: Store
  client: ServiceClient
  credentials: Pick<CredentialsInForce, 'renew' | 'broken'>
  health: LoopHealth
  wakeups: Pick<Record<LoopName, Wakeup>, 'capture' | 'dispatch' | 'report'>
}

/** What the daemon is made of: each does one thing, again and again. */
export interface Parts {
  capture: CaptureRounds
  dispatch: Dispatch
  reporting: Reporting
  heartbeat: Heartbeat
  orphanRescue: OrphanRescue
  touching: Touching
  reconciling: Reconciling
  learning: Learning
  comparing: Comparing
  pruning: Pruning
  chaining: Chaining
  historyWatch: HistoryWatch
  observing: Observing
  problemTelling: ProblemTelling
  outboxHistory: OutboxHistory
}

/** Puts the parts together, those first that others are given. Decides nothing. */
export function createParts(deps: PartsDeps): Parts {
  const { config, clock, log, metrics, store, wakeups } = deps
  const { requests, windowMs } = config.rateLimit
  const telemetry = createTelemetry({ log, metrics, outcomeOf, contract: config.discoveredContract })
  const planner = createPollPlanner(windowMs, requests, Math.random)
  const { readProcessingTimes, readPlannedPolls, movePolls } = store
  const onMoved = wakeups.dispatch.wake
  const learning = createLearning({ planner, windowMs, readProcessingTimes, readPlannedPolls, movePolls, onMoved })
  const reporting = reportingOf(deps, telemetry)
  const heartbeat = createHeartbeat({ clock, beat: store.pulse.beat, onReloadAsked: reloadAnsweringOf(deps).asked })
  const onWritten = (outcomes: WrittenOutcomes) => {
    telemetry.outcomesWritten(outcomes)
    learning.onWritten(outcomes.written)
    reporting.onWritten(outcomes.written)
  }
  let outboxWaiting = 0
  const dispatch = createDispatch({
    ...deps,
    telemetry,
    planner,
    mayClaim: heartbeat.mayClaim,
    resource: () => usedResource(deps.mappings()),
    outboxWaiting: () => outboxWaiting,
    onWritten,
    onRoom: wakeups.dispatch.wake,
  })
  const outboxHistory = outboxHistoryOf(deps)
  const summing = createSumming({ elapsedMs: clock.stopwatch(), ...store.maintenance })
  return {
    capture: captureOf(deps, telemetry),
    dispatch,
    reporting,
    heartbeat,
    orphanRescue: orphanRescueOf(deps, telemetry, dispatch, onWritten),
    touching: createTouching({ pollsInHand: dispatch.pollsInHand, touch: store.queue.touch }),
    reconciling: reconcilingOf(deps, telemetry, dispatch, summing),
    learning,
    comparing: createComparing({ compareLedger: store.compareLedger }),
    pruning: pruningOf(deps, telemetry),
    chaining: chainingOf(deps, telemetry),
    historyWatch: historyWatchOf(deps),
    observing: observingOf(deps, telemetry, async (rows) => {
      outboxWaiting = rows
      summing.sawWaiting(rows)
      await outboxHistory.sawWaiting(rows)
    }),
    problemTelling: problemTellingOf(deps, dispatch),
    outboxHistory,
  }
}

function captureOf(deps: PartsDeps, telemetry: Telemetry): CaptureRounds {
  const { store, clock, wakeups } = deps
  const { outbox } = store
  const sleep = createSleep({
    ...store.sleepMark,
    hasNew: () => hasNew(outbox),
    wake: wakeups.capture.wake,
    elapsedMs: clock.stopwatch(),
  })
  return createCaptureRounds({
    capture: captureDeps(deps, telemetry),
    sleep,
    publishTypes: store.publishTypes,
    elapsedMs: clock.stopwatch(),
    random: Math.random,
  })
}

function captureDeps({ clock, config, mappings, log, store, wakeups }: PartsDeps, telemetry: Telemetry): CaptureDeps {
  const { outbox, captureLock, outboxReports } = store
  return {
    windowMax: config.captureWindow,
    knownTypes: () => [...mappings().keys()].sort(),
    elapsedMs: clock.stopwatch(),
    claim: store.claimRows,
    claimOne: store.claimRow,
    withLock: captureLock.withLock,
    async readAgenda() {
      const { served, ...agenda } = await captureLock.readAgenda()
      return { ...agenda, hasNew: () => hasNew(outbox, served) }
    },
    skip: captureLock.skip,
    forget: captureLock.forget,
    async tellLater(outboxIds) {
      await outboxReports.renew(outboxIds)
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

function reportingOf({ clock, store, wakeups }: PartsDeps, telemetry: Telemetry): Reporting {
  const { outboxReports } = store
  return createReporting({
    stopwatch: clock.stopwatch,
    readDue: outboxReports.readDue,
    tell: (due) => store.tellRows(() => outboxReports.read(due)),
    async write(told) {
      await outboxReports.write(told)
      telemetry.reported(told)
    },
    wake: wakeups.report.wake,
  })
}

function orphanRescueOf(
  { log, store, wakeups }: PartsDeps,
  telemetry: Telemetry,
  { holds, interpretAnswer }: Dispatch,
  onWritten: (outcomes: WrittenOutcomes) => void,
): OrphanRescue {
  const { readOrphaned, readForgotten, writeSteps } = store.maintenance
  return createOrphanRescue({
    lookAtClock: store.clock.look,
    onClockJump(jumpMs) {
      log.warn(`the database’s clock jumped by ${Math.round(jumpMs)} ms: what waits for its time was moved with it`)
      wakeups.dispatch.wake()
    },
    readOrphaned,
    readForgotten: () => readForgotten(holds),
    interpretAnswer,
    blameFor: (error) => blameFor(error, 'maintenance'),
    async writeSteps(transitions) {
      const written = await writeSteps(transitions)
      onWritten({ written, heldBack: 0 })
      return written
    },
    onRescued: telemetry.orphansRescued,
  })
}

function reconcilingOf(
  { config, store, wakeups }: PartsDeps,
  telemetry: Telemetry,
  dispatch: Dispatch,
  summing: Summing,
): Reconciling {
  const { maintenance, problems } = store
  return createReconciling({
    supervise: store.queue.supervise,
    pollOverdueMs: dispatch.pollOverdueMs,
    recreateMissingJobs: maintenance.recreateMissingJobs,
    onJobsRecreated: telemetry.jobsRecreated,
    releaseWaitingKeys: maintenance.releaseWaitingKeys,
    onReleased: wakeups.dispatch.wake,
    deleteStaleInstances: maintenance.deleteStaleInstances,
    pruneRequestCounts: maintenance.pruneRequestCounts,
    stuckAfterMs: config.stuckAfterMs,
    findStuck: maintenance.findStuck,
    replaceStuck: (stuck) => problems.replace('stuck_transaction', stuck),
    compactCounts: store.compactCounts,
    sumUp: summing.runOnce,
  })
}

function pruningOf({ clock, metrics, store }: PartsDeps, telemetry: Telemetry): Pruning {
  return createPruning({
    prune: store.prune,
    readOverdueMs: store.readPruneOverdueMs,
    elapsedMs: clock.stopwatch(),
    onPruned: telemetry.pruned,
    showOverdue: metrics.pruneOverdue.set,
    tellBehind: (problems) => store.problems.replace('prune_behind', problems),
  })
}

function chainingOf({ clock, metrics, store }: PartsDeps, telemetry: Telemetry): Chaining {
  return createChaining({
    chain: store.chain,
    elapsedMs: clock.stopwatch(),
    verifyLastDay: store.verifyLastDay,
    tellBroken: (detail) =>
      store.problems.replace('chain_broken', detail === null ? [] : [{ subject: '', detail, retryInMs: null }]),
    onEndOfDay: telemetry.chainStood,
    showBehind: metrics.chainBehind.set,
  })
}

function historyWatchOf({ log, store, wakeups }: PartsDeps): HistoryWatch {
  return createHistoryWatch({
    look: store.lookAtHistory,
    onFound: ({ detail }) =>
      log.error(
        `the ledger may have lost committed data: ${detail}. Nothing is sent until outboxd recover has been given`,
      ),
    onWentOn() {
      log.warn('the ledger’s standby was promoted, and LEDGER_STANDBY is synchronous: sending goes on')
      wakeups.dispatch.wake()
    },
  })
}

function outboxHistoryOf({ log, store: { outbox, problems } }: PartsDeps): OutboxHistory {
  return createOutboxHistory({
    readHistory: () => readHistory(outbox),
    raise: (detail) => problems.raise([{ kind: 'outbox_history', subject: '', detail, retryInMs: null }]),
    clear: () => problems.clear('outbox_history', null),
    warn: log.warn,
  })
}

function observingOf(
  { clock, log, metrics, store }: PartsDeps,
  telemetry: Telemetry,
  sawWaiting: (rows: number) => Promise<void>,
): Observing {
  return createObserving({
    async watchDatabases() {
      const { outbox, ledger } = await store.readUp()
      metrics.databaseUp.set(Number(outbox), { database: 'outbox' })
      metrics.databaseUp.set(Number(ledger), { database: 'ledger' })
    },
    agreeOnSettings: store.agreeOnSettings,
    warn: log.warn,
    readLedger: store.readSnapshot,
    elapsedMs: clock.stopwatch(),
    readBacklog: () => readBacklog(store.outbox),
    show: (ledger, backlog) => metrics.setSnapshot(snapshotOf(ledger, backlog ?? { waiting: 0, oldestMs: null })),
    takeOperatorActs: store.takeOperatorActs,
    onOperatorActs: telemetry.operatorActed,
    sawWaiting,
    watchLocks: store.watchLocks,
    tellCaptureProblems: async () =>
      store.problems.replace('change_capture', captureProblems(await store.readCaptureTrouble())),
  })
}

function problemTellingOf(deps: PartsDeps, dispatch: Dispatch): ProblemTelling {
  const { clock, log, health, files, credentials } = deps
  const { pulse } = deps.store
  const { unwritten, lostClaims, starving } = dispatch
  return createProblemTelling({
    waitsLong: () => unwritten().some((outcome) => waitsLong(outcome, clock.nowMs())),
    readBlockers: pulse.readBlockers,
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
    tell: pulse.tell,
    onFailed: (error) => log.warn('what is wrong could not be written; it is tried again', { error }),
  })
}

function reloadAnsweringOf({ log, files, store: { pulse } }: PartsDeps): ReloadAnswering {
  return createReloadAnswering({
    reload: files.reload,
    answer: pulse.answerReload,
    onFailed: (error) =>
      log.warn('a reload that was asked for could not be answered; it is asked for again', { error }),
  })
}
