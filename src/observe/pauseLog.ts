import type { Clock } from '../clock.ts'
import type { CurrentPause } from '../model/dispatch.ts'
import type { PauseReason, PauseToRaise } from '../model/service.ts'
import type { Log } from './log.ts'

/** Logs each pause once, also if another instance raised the pause. */
export class PauseLog {
  readonly #clock: Clock
  readonly #log: Log
  readonly #standing = new Map<PauseReason, { lastedMs: () => number }>()
  readonly #lastCalls = new Map<PauseReason, PauseToRaise>()

  constructor({ clock, log }: { clock: Clock; log: Log }) {
    this.#clock = clock
    this.#log = log
  }

  raised(calls: readonly PauseToRaise[]): void {
    for (const call of calls) {
      this.#lastCalls.set(call.reason, call)
      if (call.reason === 'unauthorized')
        this.#log.error('service refused our sign-in', { reason: call.reason, detail: call.logDetail })
    }
  }

  seen(pauses: readonly CurrentPause[]): void {
    for (const pause of pauses) if (!this.#standing.has(pause.reason)) this.#begin(pause)
    for (const [reason, { lastedMs }] of this.#standing)
      if (!pauses.some((pause) => pause.reason === reason)) this.#end(reason, lastedMs())
  }

  #begin({ reason, leftMs, forMs }: CurrentPause): void {
    const sinceSeenMs = this.#clock.stopwatch()
    this.#standing.set(reason, { lastedMs: () => Math.round(forMs + sinceSeenMs()) })
    this.#log.warn('paused', {
      reason,
      until: leftMs === null ? undefined : new Date(this.#clock.nowMs() + leftMs).toISOString(),
      detail: this.#lastCalls.get(reason)?.logDetail ?? '`outboxd status` says why',
    })
  }

  #end(reason: PauseReason, lastedMs: number): void {
    this.#standing.delete(reason)
    this.#lastCalls.delete(reason)
    this.#log.info('resumed', { reason, lastedMs })
  }
}
