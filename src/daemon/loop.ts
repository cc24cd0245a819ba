import type { Readiness } from '../observe/httpServer.ts'
import { formatIsoInstant } from '../time.ts'

export interface LoopPart {
  /** @returns milliseconds until the next round, which a wake shortens */
  runOnce(): Promise<number>
}

export const createPeriodicPart = (waitMs: number, work: () => Promise<unknown>): LoopPart => ({
  async runOnce() {
    await work()
    return waitMs
  },
})

/** After a failure, no step begins later than this in the round, because each may wait for a time limit of 25 s, too. */
const failedRoundMaxMs = 10_000

/**
 * A failed step does not keep the others from running, unless it took long. Then the next round begins behind that
 * step.
 */
export function createStepRound(
  steps: readonly (() => Promise<void>)[],
  monotonicMs = () => performance.now(),
): () => Promise<void> {
  let first = 0
  return async () => {
    const startMs = monotonicMs()
    const failures: unknown[] = []
    for (let n = 0; n < steps.length; n++) {
      const at = (first + n) % steps.length
      if (failures.length > 0 && monotonicMs() - startMs > failedRoundMaxMs) {
        first = at
        break
      }
      await steps[at]?.().catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }
}

export interface Loop {
  /** Resolves when the round that runs has ended. */
  stop(): Promise<void>
}

export interface LoopDeps {
  part: LoopPart
  wakeup: Wakeup
  onSucceeded(): void
  onFailed(error: unknown): void
  backoffMaxMs: number
}

const backoffMinMs = 250

/** Repeats a part's rounds: after the wait that the part returns, after a wake, and with backoff after a failure. */
export function startLoop({ part, wakeup, onSucceeded, onFailed, backoffMaxMs }: LoopDeps): Loop {
  let stopped = false
  let failures = 0
  /** Only `stop` ends a backoff, because a wake does not fix the failure. */
  const backoff = createWakeup()

  async function round(): Promise<number> {
    try {
      const waitMs = await part.runOnce()
      failures = 0
      onSucceeded()
      return waitMs
    } catch (error) {
      failures += 1
      onFailed(error)
      return Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(failures - 1, 10))
    }
  }

  async function run(): Promise<void> {
    while (!stopped) {
      wakeup.reset()
      const waitMs = await round()
      if (waitMs <= 0) await new Promise(setImmediate)
      else if (!stopped) await (failures > 0 ? backoff : wakeup).sleep(waitMs)
    }
  }

  const running = run()
  return {
    stop() {
      stopped = true
      backoff.wake()
      wakeup.wake()
      return running
    },
  }
}

export interface Wakeup {
  /** Ends the current wait, or skips the next one. */
  wake(): void
  reset(): void
  /** Waits `ms`, unless woken since the last reset. */
  sleep(ms: number): Promise<void>
}

export function createWakeup(): Wakeup {
  let isWoken = false
  let interrupt = () => {}
  return {
    wake() {
      isWoken = true
      interrupt()
    },
    reset() {
      isWoken = false
    },
    sleep(ms) {
      if (isWoken) return Promise.resolve()
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, ms)
        interrupt = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
  }
}

export interface FailingLoop {
  loop: string
  error: unknown
}

interface Moment {
  /** Wall clock, for messages only. */
  atMs: number
  monotonicMs: number
}

interface State {
  lastRound: Moment
  lastSuccess: Moment | null
  failures: number
  failingSince: Moment
  error: unknown
}

const stuckMs = 120_000
const staleMs = 30_000

/** A loop is reported after this many failures in a row, or after `failingToTellMs`. */
const failuresToTell = 3
const failingToTellMs = 10_000

/** Measures ages by the monotonic clock, because a wall clock that is set would make loops look stuck, or hide stuck ones. */
export class LoopHealth {
  readonly #clocks: { nowMs(): number; monotonicMs(): number }
  readonly #states = new Map<string, State>()

  constructor(clocks: { nowMs(): number; monotonicMs(): number }) {
    this.#clocks = clocks
  }

  started(loop: string): void {
    this.#states.set(loop, fresh(this.#now()))
  }

  succeeded(loop: string): void {
    this.#states.set(loop, { ...fresh(this.#now()), lastSuccess: this.#now() })
  }

  failed(loop: string, error: unknown): void {
    const { failures, failingSince, lastSuccess } = this.#stateOf(loop)
    this.#states.set(loop, {
      lastRound: this.#now(),
      lastSuccess,
      failures: failures + 1,
      failingSince: failures === 0 ? this.#now() : failingSince,
      error,
    })
  }

  failing(): FailingLoop[] {
    const failing = [...this.#states].filter(([, { failures, failingSince }]) => {
      return failures >= failuresToTell || (failures > 0 && this.#ageMs(failingSince) >= failingToTellMs)
    })
    const hanging = this.#stuck().map(({ loop, since }) => ({
      loop,
      error: new Error(`the loop hangs: its last round ended at ${since}`),
    }))
    return [...failing.map(([loop, { error }]) => ({ loop, error })), ...hanging]
  }

  live(): Readiness {
    return { reasons: this.#stuck().map(({ loop, since }) => `the loop ${loop} has been stuck since ${since}`) }
  }

  ready(needed: readonly string[]): Readiness {
    const reasons: string[] = []
    for (const loop of needed) {
      const { lastSuccess } = this.#stateOf(loop)
      if (lastSuccess !== null && this.#ageMs(lastSuccess) <= staleMs) continue
      const since = lastSuccess === null ? 'the start' : formatIsoInstant(lastSuccess.atMs)
      reasons.push(`the loop ${loop} has not succeeded since ${since}`)
    }
    return { reasons }
  }

  #stuck(): { loop: string; since: string }[] {
    return [...this.#states]
      .filter(([, { lastRound }]) => this.#ageMs(lastRound) > stuckMs)
      .map(([loop, { lastRound }]) => ({ loop, since: formatIsoInstant(lastRound.atMs) }))
  }

  #stateOf(loop: string): State {
    return this.#states.get(loop) ?? fresh(this.#now())
  }

  #now(): Moment {
    return { atMs: this.#clocks.nowMs(), monotonicMs: this.#clocks.monotonicMs() }
  }

  #ageMs(moment: Moment): number {
    return this.#clocks.monotonicMs() - moment.monotonicMs
  }
}

const fresh = (now: Moment): State => ({
  lastRound: now,
  lastSuccess: null,
  failures: 0,
  failingSince: now,
  error: null,
})
