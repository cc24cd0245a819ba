import type { Clock } from '../../clock.ts'
import type { NoAnswerCause } from '../../model/service.ts'

const waitMinMs = 1_000
const waitMaxMs = 60_000

/**
 * Keeps this instance from claiming while its host lacks what a request needs: a file descriptor, a port, memory, or an
 * answer of DNS. Other instances go on, because their hosts may have it.
 *
 * One request after the wait shows whether the fault is over. Each further fault doubles the wait, from 1 s to 60 s.
 */
export class HostWatch {
  readonly #clock: Pick<Clock, 'stopwatch'>
  #fault: { detail: string; waitMs: number; sinceMs: () => number } | null = null

  constructor(clock: Pick<Clock, 'stopwatch'>) {
    this.#clock = clock
  }

  /** Learns from each answer to a request, or from null for one that did not leave. */
  note(answer: { kind: 'response' } | { kind: 'no-answer'; cause: NoAnswerCause; detail: string } | null): void {
    if (answer === null) return
    if (answer.kind === 'response' || answer.cause !== 'host') {
      this.#fault = null
      return
    }
    // Requests that were claimed together fail together, and count as one fault.
    if (!this.mayClaim()) return
    const waitMs = this.#fault === null ? waitMinMs : Math.min(2 * this.#fault.waitMs, waitMaxMs)
    this.#fault = { detail: answer.detail, waitMs, sinceMs: this.#clock.stopwatch() }
  }

  mayClaim(): boolean {
    return this.#fault === null || this.#fault.sinceMs() >= this.#fault.waitMs
  }

  /** Says what the host lacks; null if the last request left it. */
  fault(): string | null {
    return this.#fault === null ? null : this.#fault.detail
  }
}
