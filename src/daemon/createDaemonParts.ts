import { replaceInstanceProblems, writeHeartbeat } from '../ledger/instances.ts'
import type { WrittenOutcomes } from '../ledger/outcomes.ts'
import type { LoopName } from '../observe/metricRows.ts'
import { Capture } from './capture/capture.ts'
import type { DaemonContext } from './context.ts'
import { createDispatchPart, type DispatchPart } from './createDispatchPart.ts'
import {
  createHeartbeat,
  createProblemReporter,
  findInstanceProblems,
  type Heartbeat,
  type ProblemReporter,
} from './heartbeat.ts'
import type { LoopPart } from './loop.ts'
import { createMaintenanceParts } from './maintenance.ts'
import { PollPlanner, PollPlanUpdates } from './pollPlanner.ts'
import { WriteBack } from './writeBack.ts'

export type DaemonParts = ReturnType<typeof createDaemonParts>

export function createDaemonParts(daemon: DaemonContext) {
  const { config, databases, telemetry, wakeups } = daemon
  const { windowMs } = config.rateLimit
  const planner = new PollPlanner(windowMs)
  const schedule = new PollPlanUpdates(planner, databases, windowMs, wakeups.dispatch.wake)
  const report = new WriteBack(daemon)
  const heartbeat = heartbeatOf(daemon)
  const onWritten = (outcomes: WrittenOutcomes) => {
    telemetry.outcomesWritten(outcomes)
    schedule.onWritten(outcomes.written)
    report.onWritten(outcomes.written)
  }
  let waiting = 0
  const outboxWaiting = () => waiting
  const dispatch = createDispatchPart(daemon, { planner, heartbeat, outboxWaiting, onWritten })
  const problems = problemTellingOf(daemon, dispatch)
  const stopping = new AbortController()
  const maintenance = createMaintenanceParts(daemon, {
    dispatch,
    mayRescue: heartbeat.mayRescue,
    onWritten,
    onBacklog(rows) {
      waiting = rows
    },
    stopping: stopping.signal,
  })
  // Not awaited, because the next heartbeat must not wait until the problems are written.
  const beatAndTell = { runOnce: () => heartbeat.runOnce().finally(() => void problems.runOnce()) }
  // A daemon that differs does not even look at the outbox, until it begins anew with settings that are the ledger's.
  const differs = databases.differences !== ''
  const idle: LoopPart = { runOnce: async () => lookEveryMs }
  const rounds: Record<LoopName, LoopPart> = {
    capture: differs ? idle : new Capture(daemon),
    dispatch,
    report: differs ? idle : report,
    heartbeat: beatAndTell,
    schedule,
    ...maintenance,
  }
  return { rounds, dispatch, problems, stopping }
}

const lookEveryMs = 5_000

function heartbeatOf({ clock, config, databases, wakeups }: DaemonContext): Heartbeat {
  const { heartbeats, history, instance } = databases
  return createHeartbeat({
    clock,
    // Fails if the ledger belongs to a different service, so that this instance claims no more work.
    async beat() {
      const beat = await writeHeartbeat(heartbeats, instance, history.lookFor(), config.service)
      if (history.note(beat.history, beat.beats)) wakeups.history.wake()
      const { hasOrphans, isClockBack } = beat
      if (hasOrphans || isClockBack) wakeups.orphans.wake()
    },
  })
}

function problemTellingOf(daemon: DaemonContext, dispatch: DispatchPart): ProblemReporter {
  const { clock, log, health, credentials } = daemon
  const { heartbeats, instance, differences } = daemon.databases
  return createProblemReporter({
    problems: () =>
      findInstanceProblems(
        {
          failing: health.failing(),
          lostClaims: dispatch.lostClaims(),
          lateRequests: dispatch.lateRequests(),
          unwritten: dispatch.unwritten(),
          differences,
          brokenCredentials: credentials.broken(),
          hostFault: dispatch.hostFault(),
          logFault: log.fault(),
        },
        clock.nowMs(),
      ),
    replaceProblems: (problems) => replaceInstanceProblems(heartbeats, instance.id, problems),
    onFailed: (error) => log.warn('problems of this instance could not be written: the daemon tries again', { error }),
  })
}
