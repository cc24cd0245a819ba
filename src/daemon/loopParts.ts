import { readRequestDemand } from '../ledger/budget.ts'
import { Claims } from '../ledger/claims.ts'
import { type WrittenOutcomes, writeOutcomes } from '../ledger/outcomes.ts'
import type { LoopName } from '../observe/metricRows.ts'
import { PauseLog } from '../observe/pauseLog.ts'
import { TokenCache } from '../service/tokens.ts'
import { Attempts } from './attempts.ts'
import { Capture } from './capture/capture.ts'
import type { DaemonContext } from './context.ts'
import { Dispatch } from './dispatch/dispatch.ts'
import { OutcomeWriter } from './dispatch/outcomeWriter.ts'
import { TokenRequests } from './dispatch/tokenRequests.ts'
import { Heartbeat } from './heartbeat.ts'
import { InstanceProblems } from './instanceProblems.ts'
import type { LoopPart } from './loop.ts'
import { createMaintenanceLoops } from './maintenance.ts'
import { PollPlanner, PollPlanUpdates } from './pollPlanner.ts'
import { WriteBack } from './writeBack.ts'

export interface LoopParts {
  rounds: Record<LoopName, LoopPart>
  dispatch: Dispatch
  /** Ends the maintenance. */
  stopping: AbortController
}

/** Puts the daemon together: the stages of a record, and the loops that run them. */
export function createLoopParts(daemon: DaemonContext): LoopParts {
  const { config, clock, databases, telemetry, wakeups } = daemon
  const { windowMs } = config.rateLimit
  const planner = new PollPlanner(windowMs, config.captureWindow)
  const schedule = new PollPlanUpdates(planner, databases, { windowMs, clock, onMoved: wakeups.dispatch.wake })
  const writeBack = new WriteBack(daemon)
  const heartbeat = new Heartbeat(daemon)
  const pauseLog = new PauseLog(daemon)
  const onWritten = (outcomes: WrittenOutcomes) => {
    telemetry.outcomesWritten(outcomes)
    schedule.onWritten(outcomes.written)
    writeBack.onWritten(outcomes.written)
  }
  const outcomes = new OutcomeWriter(async (batch) => {
    const written = await writeOutcomes(databases, batch)
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
  const rounds: LoopParts['rounds'] = {
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
  const idle = { runOnce: async () => lookEveryMs }
  return { capture: idle, report: idle }
}

const lookEveryMs = 5_000
