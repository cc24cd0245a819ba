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

/** A failed step ends the round. The next round begins behind that step, so that it does not keep the others from running. */
export function createStepRound(steps: readonly (() => Promise<void>)[]): () => Promise<void> {
  let first = 0
  return async () => {
    const inOrder = [...steps.slice(first), ...steps.slice(0, first)]
    for (const step of inOrder) {
      first = (first + 1) % steps.length
      await step()
    }
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

/** Times are of the monotonic clock. */
interface State {
  lastRoundMs: number
  lastSuccessMs: number | null
  /** Null after a success. */
  failingSinceMs: number | null
  error: unknown
}

const stuckMs = 120_000
const staleMs = 30_000

/** A shorter failure usually passes. */
const failingToTellMs = 10_000

/** Measures ages by the monotonic clock, because a wall clock that is set would make loops look stuck, or hide stuck ones. */
export class LoopHealth {
  readonly #clocks: { nowMs(): number; monotonicMs(): number }
  readonly #states = new Map<string, State>()

  constructor(clocks: { nowMs(): number; monotonicMs(): number }) {
    this.#clocks = clocks
  }

  started(loop: string): void {
    this.#states.set(loop, fresh(this.#clocks.monotonicMs()))
  }

  succeeded(loop: string): void {
    const nowMs = this.#clocks.monotonicMs()
    this.#states.set(loop, { ...fresh(nowMs), lastSuccessMs: nowMs })
  }

  failed(loop: string, error: unknown): void {
    const nowMs = this.#clocks.monotonicMs()
    const state = this.#states.get(loop) ?? fresh(nowMs)
    this.#states.set(loop, {
      ...state,
      lastRoundMs: nowMs,
      failingSinceMs: state.failingSinceMs ?? nowMs,
      error,
    })
  }

  failing(): FailingLoop[] {
    const failing = [...this.#states].filter(
      ([, { failingSinceMs }]) => failingSinceMs !== null && this.#ageMs(failingSinceMs) >= failingToTellMs,
    )
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
      const lastSuccessMs = this.#states.get(loop)?.lastSuccessMs ?? null
      if (lastSuccessMs !== null && this.#ageMs(lastSuccessMs) <= staleMs) continue
      const since = lastSuccessMs === null ? 'the start' : this.#instant(lastSuccessMs)
      reasons.push(`the loop ${loop} has not succeeded since ${since}`)
    }
    return { reasons }
  }

  #stuck(): { loop: string; since: string }[] {
    return [...this.#states]
      .filter(([, { lastRoundMs }]) => this.#ageMs(lastRoundMs) > stuckMs)
      .map(([loop, { lastRoundMs }]) => ({ loop, since: this.#instant(lastRoundMs) }))
  }

  #ageMs(monotonicMs: number): number {
    return this.#clocks.monotonicMs() - monotonicMs
  }

  #instant(monotonicMs: number): string {
    return formatIsoInstant(this.#clocks.nowMs() - this.#ageMs(monotonicMs))
  }
}

const fresh = (nowMs: number): State => ({
  lastRoundMs: nowMs,
  lastSuccessMs: null,
  failingSinceMs: null,
  error: null,
})
