import type { Readiness, SendingReadiness } from '../observe/httpServer.ts'
import type { LoopName } from '../observe/metricRows.ts'
import { showError } from '../observe/redact.ts'
import type { DaemonContext } from './context.ts'
import type { LoopParts } from './createLoopParts.ts'
import { type Loop, type LoopPart, startLoop } from './loop.ts'

export interface Loops {
  stopTaking(): Promise<void>
  /** Stops the loops that `stopTaking` left running, and writes the last outcomes back. */
  stop(): Promise<void>
  live(): Readiness
  ready(): SendingReadiness
}

const usualMs = 10_000
/** Short, because after a late heartbeat other instances would take this one for dead. */
const heartbeatMs = 1_000
/** Short, because other instances wait for what each one knows of the ledger's history. */
const historyMs = 1_000

/** The loops that every record needs. */
export const essentialLoops: readonly LoopName[] = ['capture', 'dispatch', 'report', 'heartbeat']

export function startLoops({ clock, log, metrics, health, wakeups }: DaemonContext, parts: LoopParts): Loops {
  const start = (name: LoopName, part: LoopPart, backoffMaxMs: number): Loop => {
    health.started(name)
    return startLoop({
      part,
      wakeup: wakeups[name],
      backoffMaxMs,
      onSucceeded() {
        health.succeeded(name)
        metrics.loopLastSuccess.set(clock.nowMs(), { loop: name })
        metrics.loopAge.restart({ loop: name })
      },
      onFailed(error) {
        health.failed(name, error)
        log.error('loop failed: the daemon tries again', { loop: name, code: showError(error).code, error })
      },
    })
  }

  const backoffMaxMs: Partial<Record<LoopName, number>> = { heartbeat: heartbeatMs, history: historyMs }
  const loops = Object.fromEntries(
    Object.entries(parts.rounds).map(([name, part]) => [
      name,
      start(name as LoopName, part, backoffMaxMs[name as LoopName] ?? usualMs),
    ]),
  ) as Record<LoopName, Loop>
  const { dispatch, capture, heartbeat, ...others } = loops
  return {
    async stopTaking() {
      await Promise.all([capture.stop(), dispatch.stop()])
    },
    async stop() {
      parts.stopping.abort()
      await Promise.all(Object.values(others).map((loop) => loop.stop()))
      await parts.rounds.report
        .runOnce()
        .catch((error: unknown) =>
          log.warn('last outcomes could not be written back: the next start writes them', { error }),
        )
      await heartbeat.stop()
      await parts.problems.clear()
    },
    live: health.live,
    ready: () => ({ ...health.ready(essentialLoops), pauses: parts.dispatch.pauses() }),
  }
}
