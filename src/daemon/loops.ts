import type { Readiness, SendingReadiness } from '../observe/httpServer.ts'
import type { Log } from '../observe/log.ts'
import type { LoopName } from '../observe/metricRows.ts'
import { redactError } from '../observe/redact.ts'
import type { DaemonContext } from './context.ts'
import type { Dispatch } from './dispatch/dispatch.ts'
import { type Loop, type LoopPart, startLoop } from './loop.ts'
import type { LoopParts } from './loopParts.ts'

export interface Loops {
  /** Resolves when every outcome is written. */
  stop(): Promise<void>
  live(): Readiness
  ready(): SendingReadiness
}

const usualBackoffMaxMs = 10_000
/** Short, because other instances wait for this one's heartbeat, and for its check of the ledger for data loss. */
const backoffMaxMs: Partial<Record<LoopName, number>> = { heartbeat: 500, history: 1_000 }

/** The loops that every record needs. /readyz fails if one of them does not succeed. */
export const readinessLoops: readonly LoopName[] = ['capture', 'dispatch', 'report', 'heartbeat']

export function startLoops({ clock, log, metrics, health, wakeups }: DaemonContext, parts: LoopParts): Loops {
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
    Object.entries(parts.rounds).map(([name, part]) => [name, start(name as LoopName, part)]),
  ) as Record<LoopName, Loop>
  const { dispatch, capture, heartbeat, ...others } = loops
  return {
    async stop() {
      const stopTakingWork = () => Promise.all([capture.stop(), dispatch.stop()])
      await stopAndWaitForOutcomes(parts.dispatch, { log, stopTakingWork })
      parts.stopping.abort()
      await Promise.all(Object.values(others).map((loop) => loop.stop()))
      await parts.rounds.report
        .runOnce()
        .catch((error: unknown) =>
          log.warn('last outcomes could not be written back: the next start writes them', { error }),
        )
      await heartbeat.stop()
    },
    live: () => health.live(),
    ready: () => ({ ...health.ready(readinessLoops), pauses: parts.dispatch.pauses() }),
  }
}

type Settling = Pick<Dispatch, 'drained' | 'unsettled' | 'recoverClaims' | 'lostClaims'>

const tellEveryMs = 10_000
const lookEveryMs = 1_000

/**
 * Stops claiming, then waits until every outcome is known and written, however long: an earlier exit would leave records
 * in doubt, even unsent or answered ones. A second signal or the supervisor ends the wait.
 */
export async function stopAndWaitForOutcomes(
  dispatch: Settling,
  { log, stopTakingWork }: { log: Pick<Log, 'warn'>; stopTakingWork(): Promise<unknown> },
): Promise<void> {
  let lastedMs = 0
  const telling = setInterval(() => {
    lastedMs += tellEveryMs
    const records = dispatch.unsettled()
    log.warn(
      'stopping takes long: the daemon waits for answers of the service, or for the database to write outcomes and to confirm claims. A second signal stops the daemon at once and leaves these records in doubt',
      { lastedMs, count: records.length, records },
    )
  }, tellEveryMs)
  await stopTakingWork()
  await Promise.all([dispatch.drained(), recoverAll(dispatch)])
  clearInterval(telling)
}

async function recoverAll(dispatch: Settling): Promise<void> {
  while (dispatch.lostClaims().length > 0) {
    await dispatch.recoverClaims().catch(() => {})
    if (dispatch.lostClaims().length > 0) await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
  }
}
