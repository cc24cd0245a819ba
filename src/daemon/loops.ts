import { readRequestDemand } from '../ledger/budget.ts'
import { Claims } from '../ledger/claims.ts'
import { type WrittenOutcomes, writeOutcomes } from '../ledger/outcomes.ts'
import type { Transition } from '../model/submission.ts'
import type { Readiness, SendingReadiness } from '../observe/httpServer.ts'
import type { Log } from '../observe/log.ts'
import type { LoopName } from '../observe/metricRows.ts'
import { PauseLog } from '../observe/pauseLog.ts'
import { redactError } from '../observe/redact.ts'
import { isTransientError } from '../postgres/database.ts'
import { TokenCache } from '../service/tokens.ts'
import { Attempts } from './attempts.ts'
import { Capture } from './capture.ts'
import type { DaemonContext } from './context.ts'
import { Dispatch } from './dispatch/dispatch.ts'
import { OutcomeWriter } from './dispatch/outcomeWriter.ts'
import { TokenRequests } from './dispatch/tokenRequests.ts'
import { Heartbeat } from './heartbeat.ts'
import { InstanceProblems } from './instanceProblems.ts'
import { type Loop, type LoopPart, startLoop } from './loop.ts'
import { createMaintenanceLoops } from './maintenance.ts'
import { PollPlanner, PollPlanUpdates } from './pollPlanner.ts'
import { WriteBack } from './writeBack.ts'

export interface Loops {
  /**
   * Resolves when every outcome is written.
   * @throws Error if outcomes are still missing after `patienceMs`
   */
  stop(patienceMs: number): Promise<void>
  live(): Readiness
  ready(): SendingReadiness
}

const usualBackoffMaxMs = 10_000
/** Short, because other instances wait for this one's heartbeat, and for its check of the ledger for data loss. */
const backoffMaxMs: Partial<Record<LoopName, number>> = { heartbeat: 500, history: 1_000 }

/** The loops that every record needs. /readyz fails if one of them does not succeed. */
export const readinessLoops: readonly LoopName[] = ['capture', 'dispatch', 'report', 'heartbeat']

/** @throws Error if the first heartbeat fails for a reason that does not pass, such as ServiceMismatch */
export async function startLoops(daemon: DaemonContext): Promise<Loops> {
  const { clock, log, metrics, health, wakeups } = daemon
  const { rounds, dispatch, stopping } = createRounds(daemon)
  // If the database is only slow, the loop `heartbeat` tries again, and no request is claimed before it succeeds.
  await rounds.heartbeat.runOnce().catch((error: unknown) => {
    if (!isTransientError(error)) throw error
  })
  // Looks for lost data before rows are claimed. The loop `history` logs a failure.
  await rounds.history.runOnce().catch(() => {})

  const start = (name: LoopName, part: LoopPart): Loop => {
    health.started(name)
    return startLoop({
      part,
      wakeup: wakeups[name],
      backoffMaxMs: backoffMaxMs[name] ?? usualBackoffMaxMs,
      onSucceeded() {
        health.succeeded(name)
        metrics.loopLastSuccess.set(clock.nowMs(), { loop: name })
        metrics.loopAge.restart({ loop: name })
      },
      onFailed(error) {
        health.failed(name, error)
        log.error('loop failed: the daemon tries again', { loop: name, code: redactError(error).code, error })
      },
    })
  }
  const loops = Object.fromEntries(
    Object.entries(rounds).map(([name, part]) => [name, start(name as LoopName, part)]),
  ) as Record<LoopName, Loop>
  const { dispatch: dispatching, capture, heartbeat, ...others } = loops
  return {
    async stop(patienceMs) {
      const stopTakingWork = () => Promise.all([capture.stop(), dispatching.stop()])
      await stopAndWaitForOutcomes(dispatch, { log, stopTakingWork, patienceMs })
      stopping.abort()
      await Promise.all(Object.values(others).map((loop) => loop.stop()))
      await rounds.report
        .runOnce()
        .catch((error: unknown) =>
          log.warn('last outcomes could not be written back: the next start writes them', { error }),
        )
      await heartbeat.stop()
      // Settles records whose outcome was given up after the last round of the loop `orphans`.
      await rounds.orphans.runOnce().catch((error: unknown) =>
        log.warn('given-up outcomes could not be settled: another instance or the next start settles them', {
          error,
        }),
      )
    },
    live: () => health.live(),
    ready: () => ({ ...health.ready(readinessLoops), pauses: dispatch.pauses() }),
  }
}

/** Puts the daemon together: the stages of a record, and what its loops repeat. */
function createRounds(daemon: DaemonContext) {
  const { config, clock, databases, log, telemetry, wakeups } = daemon
  const { windowMs } = config.rateLimit
  const planner = new PollPlanner(windowMs, config.captureWindow)
  const schedule = new PollPlanUpdates(planner, databases, { windowMs, clock, onMoved: wakeups.dispatch.wake })
  const writeBack = new WriteBack(daemon)
  const heartbeat = new Heartbeat(daemon)
  const pauseLog = new PauseLog(daemon)
  const onWritten = (outcomes: WrittenOutcomes) => {
    telemetry.outcomesWritten(outcomes)
    writeBack.onWritten(outcomes.written)
  }
  const outcomes = new OutcomeWriter(async (batch) => {
    const written = await writeOutcomes(databases, batch)
    tellLateAnswers(log, batch.transitions, written)
    pauseLog.raised(batch.answers.flatMap(({ sign }) => (sign.kind === 'fails' ? [sign.pause] : [])))
    onWritten(written)
  }, daemon)
  const claims = new Claims(databases, clock)
  const tokenRequests = new TokenRequests(daemon, claims, outcomes)
  const refreshMs = config.service.tokenRefreshMs
  const tokens = new TokenCache(tokenRequests, { clock, refreshMs, breached: (kind) => telemetry.breached(kind) })
  const attempts = new Attempts(daemon, tokens, planner)
  const dispatch = new Dispatch(daemon, {
    readDemand: (countMax) => readRequestDemand(databases.ledger, countMax),
    pauseLog,
    planner,
    heartbeat,
    tokens,
    tokenRequests,
    claims,
    attempts,
    outcomes,
  })
  const problems = new InstanceProblems(daemon, { heartbeat, dispatch, outcomes })
  const stopping = new AbortController()
  const rounds: Record<LoopName, LoopPart> = {
    ...partsOfOutbox(daemon, writeBack),
    dispatch,
    heartbeat: { runOnce: () => heartbeat.runOnce(problems.find()) },
    schedule,
    ...createMaintenanceLoops(daemon, { heartbeat, dispatch, attempts, planner, onWritten, stopping: stopping.signal }),
  }
  return { rounds, dispatch, stopping }
}

/** A daemon that differs does not even look at the outbox, until it begins anew with settings that are the ledger's. */
function partsOfOutbox(daemon: DaemonContext, writeBack: WriteBack): Record<'capture' | 'report', LoopPart> {
  if (daemon.databases.differences === '') return { capture: new Capture(daemon), report: writeBack }
  const idle = { runOnce: async () => idleLookEveryMs }
  return { capture: idle, report: idle }
}

const idleLookEveryMs = 5_000

type Settling = Pick<Dispatch, 'drained' | 'unsettled' | 'recoverClaims' | 'lostClaims'>

interface StopOptions {
  log: Pick<Log, 'warn' | 'error'>
  stopTakingWork(): Promise<unknown>
  patienceMs: number
}

const tellEveryMs = 10_000
const lookEveryMs = 1_000

/**
 * Stops claiming, then waits until every outcome is known and written. An earlier exit would leave records in doubt, even
 * unsent or answered ones. A second signal or the supervisor ends the wait.
 *
 * @throws Error after `patienceMs`
 */
export async function stopAndWaitForOutcomes(
  dispatch: Settling,
  { log, stopTakingWork, patienceMs }: StopOptions,
): Promise<void> {
  const tooLong = Promise.withResolvers<never>()
  let lastedMs = 0
  const telling = setInterval(() => {
    lastedMs += tellEveryMs
    const records = dispatch.unsettled()
    const fields = { lastedMs, count: records.length, records }
    if (lastedMs < patienceMs)
      return log.warn(
        'stopping takes long: the daemon waits for answers of the service, or for the database to write outcomes and to confirm claims. A second signal stops the daemon at once and leaves these records in doubt',
        fields,
      )
    log.error('outcomes are still missing: the daemon ends, and the next one settles these records', fields)
    tooLong.reject(
      new Error(`outcomes of ${records.length} records were not written in ${patienceMs / 60_000} minutes`),
    )
  }, tellEveryMs)
  const settled = stopTakingWork().then(() => Promise.all([dispatch.drained(), recoverAll(dispatch)]))
  try {
    await Promise.race([settled, tooLong.promise])
  } finally {
    clearInterval(telling)
  }
}

async function recoverAll(dispatch: Settling): Promise<void> {
  while (dispatch.lostClaims().length > 0) {
    await dispatch.recoverClaims().catch(() => {})
    if (dispatch.lostClaims().length > 0) await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
  }
}

/** The record was settled while its answer was on the way, as when this process was stopped. A person can use the id. */
function tellLateAnswers(log: Log, transitions: readonly Transition[], { written }: WrittenOutcomes): void {
  const stepped = new Set(written.map(({ submissionId }) => submissionId))
  for (const { submission, poll, change } of transitions)
    if (poll === null && !stepped.has(submission.id))
      log.warn('answer was not written: the record was settled before it came, or the ledger has it already', {
        submissionId: submission.id,
        outboxId: submission.outboxId,
        transactionId: change.transactionId,
      })
}
