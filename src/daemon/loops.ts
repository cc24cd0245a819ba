import type { Clock } from '../clock.ts'
import type { Readiness, SendingReadiness } from '../observe/httpServer.ts'
import type { Log } from '../observe/log.ts'
import type { LoopName } from '../observe/metricRows.ts'
import type { Metrics } from '../observe/metrics.ts'
import { showError } from '../observe/redact.ts'
import type { Parts } from './createParts.ts'
import { type Loop, type Part, startLoop } from './loop.ts'
import type { LoopHealth } from './loopHealth.ts'
import type { Wakeup } from './wakeup.ts'

export interface LoopsDeps {
  clock: Clock
  log: Log
  metrics: Metrics
  health: LoopHealth
  parts: Parts
  wakeups: Record<LoopName, Wakeup>
}

export interface Loops {
  /** Stops what takes on work: capture and dispatch. */
  stopTaking(): Promise<void>
  /** Stops the rest, after the outbox has been told what it can be. */
  stop(): Promise<void>
  live(): Readiness
  ready(): SendingReadiness
}

const usualMs = 10_000
/** An instance that was away is to be heard again well before others may judge. */
const heartbeatMs = 1_000
/** What an instance knows of the ledger's history it says before others go on. */
const historyMs = 1_000

/** Without these no record gets on. */
export const neededLoops: readonly LoopName[] = ['capture', 'dispatch', 'report', 'heartbeat']

/** Starts what the daemon does again and again. */
export function startLoops({ clock, log, metrics, health, parts, wakeups }: LoopsDeps): Loops {
  const start = (name: LoopName, part: Part, backoffMaxMs: number): Loop => {
    health.started(name)
    return startLoop({
      name,
      part,
      wakeup: wakeups[name],
      backoffMaxMs,
      succeeded() {
        health.succeeded(name)
        metrics.loopLastSuccess.set(clock.nowMs(), { loop: name })
        metrics.loopAge.restart({ loop: name })
      },
      failed(_, error) {
        health.failed(name, error)
        log.error('a loop failed; it is tried again', { loop: name, code: showError(error).code, error })
      },
    })
  }

  const loops: Record<LoopName, Loop> = {
    dispatch: start('dispatch', parts.dispatch, usualMs),
    capture: start('capture', parts.capture, usualMs),
    report: start('report', parts.reporting, usualMs),
    heartbeat: start('heartbeat', beatAndTell(parts), heartbeatMs),
    orphans: start('orphans', parts.orphanRescue, usualMs),
    touch: start('touch', parts.touching, usualMs),
    reconcile: start('reconcile', parts.reconciling, usualMs),
    schedule: start('schedule', parts.learning, usualMs),
    compare: start('compare', parts.comparing, usualMs),
    prune: start('prune', parts.pruning, usualMs),
    chain: start('chain', parts.chaining, usualMs),
    history: start('history', parts.historyWatch, historyMs),
    observe: start('observe', parts.observing, usualMs),
  }

  const { dispatch, capture, heartbeat, ...others } = loops
  return {
    async stopTaking() {
      await Promise.all([capture.stop(), dispatch.stop()])
    },
    async stop() {
      parts.comparing.giveUp()
      parts.pruning.giveUp()
      parts.chaining.giveUp()
      await Promise.all(Object.values(others).map((loop) => loop.stop()))
      await parts.reporting
        .runOnce()
        .catch((error: unknown) => log.warn('the last reports to the outbox will be made at the next start', { error }))
      await heartbeat.stop()
      await parts.problemTelling.clear()
    },
    live: health.live,
    ready: () => ({ ...health.ready(neededLoops), pauses: parts.dispatch.pauses() }),
  }
}

/** With each beat what is wrong is told; the next does not wait for it. */
function beatAndTell({ heartbeat, problemTelling }: Parts): Part {
  return { runOnce: () => heartbeat.runOnce().finally(() => void problemTelling.runOnce()) }
}
