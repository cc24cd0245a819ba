import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapOutboxRecord.ts'
import type { Readiness } from '../observe/httpServer.ts'
import type { Log } from '../observe/log.ts'
import type { LoopName, Metrics } from '../observe/metrics.ts'
import { showError } from '../observe/redact.ts'
import type { Telemetry } from '../observe/telemetry.ts'
import { blameFor } from '../postgres/database.ts'
import { storableText } from '../postgres/storableText.ts'
import type { Store } from '../store/openStore.ts'
import { type CaptureRound, createCapture } from './capture/capture.ts'
import { captureProblems } from './capture/captureProblems.ts'
import { createSleep } from './capture/sleep.ts'
import type { Fault } from './capture/take.ts'
import type { Dispatch } from './createDispatch.ts'
import type { Heartbeat } from './heartbeat.ts'
import { instanceProblems, waitsLong } from './instanceProblems.ts'
import { type Loop, startLoop, takeEach } from './loop.ts'
import { createLoopHealth } from './loopHealth.ts'
import { reportOnce } from './report/report.ts'

export interface LoopsDeps {
  config: Config
  mappings: () => Mappings
  clock: Clock
  log: Log
  metrics: Metrics
  store: Store
  telemetry: Telemetry
  dispatching: Dispatch
  heartbeat: Heartbeat
}

export interface Loops {
  capture: Loop
  /** Stops what takes on work: capture and dispatch. */
  stopTaking(): Promise<void>
  /** Stops the rest, after the outbox has been told what it can be. */
  stop(): Promise<void>
  live(): Readiness
  ready(): Readiness
}

const captureWaitMs: Record<CaptureRound, () => number> = {
  again: () => 0,
  // Sweeps strike on all hosts at the same moment: whoever comes second every time would never have the turn.
  busy: () => 20 + 80 * Math.random(),
  idle: () => 60_000, // the sweep and the NOTIFY wake it before
}
const reportIdleMs = 2_000
const reportGatherMs = 50
const suspiciousMs = 5_000
/** Instances that are started together compare once. */
const compareAtStartMs = 60_000
const compareEachMs = 3_600_000
const lookToCompareMs = 60_000
const lookAfterMs = 3_000
const upkeepEveryRounds = 10
/** An instance that was away is to be heard again well before others may judge. */
const heartbeatBackoffMaxMs = 1_000
const backoffMaxMs = 10_000
const learnMostMs = 1_000
const replanMost = 200
const learnFromMost = 600
const observeMs = 5_000
/** More rows than these, before anything was ever captured, are a history. */
export const historyMin = 1_000

/** Without these no record gets on. */
const neededLoops: LoopName[] = ['capture', 'dispatch', 'report', 'heartbeat']

/** Starts what the daemon does again and again. */
export function startLoops(deps: LoopsDeps): Loops {
  const { config, clock, log, metrics, store, telemetry, dispatching } = deps
  const health = createLoopHealth(clock)

  const loop = (name: LoopName, runOnce: () => Promise<number>, backoff = backoffMaxMs): Loop => {
    health.started(name)
    return startLoop({
      name,
      runOnce,
      backoffMaxMs: backoff,
      succeeded() {
        health.succeeded(name)
        metrics.loopSucceeded(name, clock.nowMs())
      },
      failed(_, error) {
        health.failed(name, error)
        log.error('a loop failed; it is tried again', { loop: name, error })
      },
    })
  }

  const dispatch = loop('dispatch', dispatching.runOnce)
  dispatching.onRoom(dispatch.wake)

  const { outbox, captureLock } = store
  const sleep = createSleep({
    ...store.sleepMark,
    hasNew: outbox.hasNew,
    wake: () => capture.wake(),
    elapsedMs: clock.stopwatch(),
  })
  let took = 0
  const knownTypes = () => [...deps.mappings().keys()].sort()
  const capturing = createCapture({
    windowMax: config.captureWindow,
    knownTypes,
    hasNew: outbox.hasNew,
    claim: outbox.claim,
    claimOne: outbox.claimOne,
    withLock: captureLock.withLock,
    readAgenda: captureLock.readAgenda,
    skip: captureLock.skip,
    forget: captureLock.forget,
    async tellLater(outboxIds) {
      await store.outboxReports.renew(outboxIds)
      report.wake()
    },
    map: (record, id) => mapOutboxRecord(deps.mappings(), record, id),
    newId: uuidv7,
    newKey: randomUUID,
    faultOf,
    onCaptured(count) {
      took += count
      telemetry.captured(count)
      dispatch.wake()
    },
    onBatchFailed: (count, error) =>
      log.warn('a batch of rows could not be captured; it is done again in smaller ones', { count, error }),
    onRowRejected: (outboxId, error) => log.warn('a row could not be captured; it is rejected', { outboxId, error }),
    onRowSkipped: (outboxId, error) => log.error('a row is put off and tried again later', { outboxId, error }),
  })
  const capture: Loop = loop('capture', async () => {
    await store.publishTypes(knownTypes())
    took = 0
    const round = await capturing.runOnce()
    if (round === 'again') sleep.stayAwake()
    else if (round === 'idle') await sleep.fallAsleep(took)
    return captureWaitMs[round]()
  })

  const { outboxReports: reportDesk } = store
  const reportAll = () =>
    reportOnce({
      stopwatch: clock.stopwatch,
      readDue: reportDesk.readDue,
      tell: (due) => outbox.report(() => reportDesk.read(due)),
      write: reportDesk.write,
    })
  const report = loop('report', async () => ((await reportAll()) ? 0 : reportIdleMs))
  let isGathering = false
  telemetry.onSettled(() => {
    if (isGathering) return
    isGathering = true
    setTimeout(() => {
      isGathering = false
      report.wake()
    }, reportGatherMs).unref()
  })

  /** A lock is waited for again and again: in between nobody is seen to hold it. */
  let blockers: number[] = []
  const readBlockers = async () => {
    const isLong = dispatching.unwritten().some((outcome) => waitsLong(outcome, clock.nowMs()))
    const seen = isLong ? await store.pulse.readBlockers().catch(() => []) : []
    if (!isLong || seen.length > 0) blockers = seen
  }
  const problemsNow = () => {
    const outcomes = { unwritten: dispatching.unwritten(), blockers }
    return instanceProblems(health.failing(), dispatching.lostClaims(), dispatching.starving(), outcomes, clock.nowMs())
  }
  const tell = async (problems = problemsNow) => {
    await readBlockers()
    await store.pulse
      .tell(problems())
      .catch((error: unknown) => log.warn('what is wrong could not be written; it is tried again', { error }))
  }
  const heartbeat = loop(
    'heartbeat',
    async () => {
      try {
        return await deps.heartbeat.runOnce()
      } finally {
        void tell() // the next beat does not wait for it
      }
    },
    heartbeatBackoffMaxMs,
  )

  const orphans = loop('orphans', async () => {
    const { jumpMs } = await store.clock.look() // before anybody is judged by it
    if (jumpMs !== 0) {
      log.warn(`the database’s clock jumped by ${Math.round(jumpMs)} ms: what waits for its time was moved with it`)
      dispatch.wake()
    }
    telemetry.orphansRescued(await dispatching.rescueOrphans())
    return lookAfterMs
  })

  const touch = loop('touch', async () => {
    const jobs = dispatching.pollsInHand()
    if (jobs.length > 0) await store.queue.touch(jobs)
    return lookAfterMs
  })

  let rounds = 0
  const reconcile = loop('reconcile', async () => {
    const isUpkeep = rounds++ % upkeepEveryRounds === 0
    // A poll that is long due may be in the hand of a dead instance.
    const supervise = isUpkeep || dispatching.pollOverdueMs() > suspiciousMs ? [store.queue.supervise] : []
    const maintenance = [
      async () => telemetry.jobsRecreated(await store.maintenance.recreateMissingJobs()),
      async () => {
        if ((await store.maintenance.releaseWaitingKeys()) > 0) dispatch.wake()
      },
      store.maintenance.deleteStaleInstances,
      async () => {
        const { stuckAfterMs } = config
        const stuck = stuckAfterMs === null ? [] : await store.maintenance.findStuck(stuckAfterMs)
        await store.problems.replace('stuck_transaction', stuck)
      },
      store.compactCounts,
    ]
    await takeEach([...supervise, ...(isUpkeep ? maintenance : [])])
    return lookAfterMs
  })

  let hasLearned = false
  const learn = loop('schedule', async () => {
    if (telemetry.takeCompletions() > 0 || !hasLearned) {
      dispatching.planner.learn(await store.readProcessingTimes(learnFromMost))
      hasLearned = true
    }
    if (dispatching.planner.mayReplan()) {
      const moves = dispatching.planner.replan(await store.readPlannedPolls(replanMost))
      if (moves.length > 0) await store.movePolls(moves)
      if (moves.length > 0) dispatch.wake()
    }
    return Math.min(learnMostMs, config.rateLimit.windowMs / 60)
  })

  let compareEveryMs = compareAtStartMs
  let isStopping = false
  const compare = loop('compare', async () => {
    const comparison = await store.compareLedger(compareEveryMs, () => !isStopping)
    if (comparison !== 'not-due') compareEveryMs = compareEachMs
    return comparison === 'begun' ? 0 : lookToCompareMs
  })

  let differences = 0
  let mayHaveHistory = true
  const observe = loop('observe', async () => {
    const agreed = await store.agreeOnSettings()
    if (agreed.before !== null)
      log.warn(`for all instances ${agreed.requests} requests in ${agreed.windowMs / 1000} s hold now`)
    if (agreed.differences.length !== differences)
      log.warn(agreed.differences[0]?.detail ?? 'the settings of the instances no longer differ')
    differences = agreed.differences.length
    const [ledger, outbox] = await Promise.all([store.readSnapshot(), store.outbox.backlog()])
    const unsent = [ledger.oldestUnsentMs, outbox.oldestMs].filter((ms) => ms !== null)
    metrics.setSnapshot({
      ...ledger,
      pauses: ledger.pauses.map(({ reason }) => reason),
      outboxWaiting: outbox.waiting,
      oldestUnsentMs: unsent.length > 0 ? Math.min(...unsent) : null,
    })
    telemetry.operatorActed(await store.takeOperatorActs())
    if (mayHaveHistory && outbox.waiting <= historyMin) {
      await store.problems.clear('outbox_history', null)
      mayHaveHistory = false
    }
    await store.watchLocks()
    await store.problems.replace('change_capture', captureProblems(await store.readCaptureTrouble()))
    return observeMs
  })

  return {
    capture,
    async stopTaking() {
      await Promise.all([capture.stop(), dispatch.stop()])
    },
    async stop() {
      isStopping = true
      await Promise.all([compare, observe, learn, reconcile, touch, orphans, report].map((each) => each.stop()))
      await reportAll().catch((error: unknown) =>
        log.warn('the last reports to the outbox will be made at the next start', { error }),
      )
      await heartbeat.stop()
      await tell(() => [])
    },
    live: health.live,
    ready: () => health.ready(neededLoops),
  }
}

/** What is known of an error: its words for the ledger, and the code alone for what everybody may read. */
function faultOf(error: unknown, isMark: boolean): Fault {
  const { code, class: name } = showError(error)
  const message = error instanceof Error ? error.message : String(error)
  return {
    blame: blameFor(error, isMark),
    code: code ?? name,
    message: storableText(message.slice(0, messageMaxChars)),
  }
}

const messageMaxChars = 500
