import type { Clock } from '../clock.ts'
import type { CurrentPause } from '../model/dispatch.ts'
import type { PauseReason, PauseToRaise } from '../model/service.ts'
import type { Log } from './log.ts'

export type PauseLog = ReturnType<typeof createPauseLog>

/** Logs each pause once, also if another instance raised the pause. */
export function createPauseLog({ clock, log }: { clock: Clock; log: Log }) {
  const standing = new Map<PauseReason, { lastedMs: () => number }>()
  const lastCalls = new Map<PauseReason, PauseToRaise>()

  function begin({ reason, leftMs, forMs }: CurrentPause): void {
    const sinceSeenMs = clock.stopwatch()
    standing.set(reason, { lastedMs: () => Math.round(forMs + sinceSeenMs()) })
    log.warn('paused', {
      reason,
      until: leftMs === null ? undefined : new Date(clock.nowMs() + leftMs).toISOString(),
      detail: lastCalls.get(reason)?.logDetail ?? '`outboxd status` says why',
    })
  }

  function end(reason: PauseReason, lastedMs: number): void {
    standing.delete(reason)
    lastCalls.delete(reason)
    log.info('resumed', { reason, lastedMs })
  }

  return {
    raised(calls: readonly PauseToRaise[]): void {
      for (const call of calls) {
        lastCalls.set(call.reason, call)
        if (call.reason === 'unauthorized')
          log.error('service refused our sign-in', { reason: call.reason, detail: call.logDetail })
      }
    },
    seen(pauses: readonly CurrentPause[]): void {
      for (const pause of pauses) if (!standing.has(pause.reason)) begin(pause)
      for (const [reason, { lastedMs }] of standing)
        if (!pauses.some((pause) => pause.reason === reason)) end(reason, lastedMs())
    },
  }
}
