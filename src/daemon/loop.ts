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

export type Loop = ReturnType<typeof startLoop>

export interface LoopDeps {
  part: LoopPart
  wakeup: Wakeup
  onSucceeded(): void
  onFailed(error: unknown): void
  backoffMaxMs: number
}

const backoffMinMs = 250

/** Repeats a part's rounds: after the wait that the part returns, after a wake, and with backoff after a failure. */
export function startLoop({ part, wakeup, onSucceeded, onFailed, backoffMaxMs }: LoopDeps) {
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
    stop(): Promise<void> {
      stopped = true
      backoff.wake()
      wakeup.wake()
      return running
    },
  }
}

export type Wakeup = ReturnType<typeof createWakeup>

export function createWakeup() {
  let isWoken = false
  let interrupt = () => {}
  return {
    /** Ends the current wait, or skips the next one. */
    wake(): void {
      isWoken = true
      interrupt()
    },
    reset(): void {
      isWoken = false
    },
    /** Waits `ms`, unless woken since the last reset. */
    sleep(ms: number): Promise<void> {
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

export type LoopHealth = ReturnType<typeof createLoopHealth>

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
export function createLoopHealth({ nowMs, monotonicMs }: { nowMs(): number; monotonicMs(): number }) {
  const states = new Map<string, State>()
  const now = (): Moment => ({ atMs: nowMs(), monotonicMs: monotonicMs() })
  const ageMs = (moment: Moment) => monotonicMs() - moment.monotonicMs
  const stateOf = (loop: string): State => states.get(loop) ?? fresh(now())
  const stuck = () =>
    [...states]
      .filter(([, { lastRound }]) => ageMs(lastRound) > stuckMs)
      .map(([loop, { lastRound }]) => ({ loop, since: formatIsoInstant(lastRound.atMs) }))
  return {
    started: (loop: string): void => void states.set(loop, fresh(now())),
    succeeded: (loop: string): void => void states.set(loop, { ...fresh(now()), lastSuccess: now() }),
    failed(loop: string, error: unknown): void {
      const { failures, failingSince, lastSuccess } = stateOf(loop)
      states.set(loop, {
        lastRound: now(),
        lastSuccess,
        failures: failures + 1,
        failingSince: failures === 0 ? now() : failingSince,
        error,
      })
    },
    failing: (): FailingLoop[] => [
      ...[...states]
        .filter(
          ([, { failures, failingSince }]) =>
            failures >= failuresToTell || (failures > 0 && ageMs(failingSince) >= failingToTellMs),
        )
        .map(([loop, { error }]) => ({ loop, error })),
      ...stuck().map(({ loop, since }) => ({
        loop,
        error: new Error(`the loop hangs: its last round ended at ${since}`),
      })),
    ],
    live: (): Readiness => ({
      reasons: stuck().map(({ loop, since }) => `the loop ${loop} has been stuck since ${since}`),
    }),
    ready: (needed: readonly string[]): Readiness => ({
      reasons: needed
        .map((loop) => ({ loop, lastSuccess: stateOf(loop).lastSuccess }))
        .filter(({ lastSuccess }) => lastSuccess === null || ageMs(lastSuccess) > staleMs)
        .map(
          ({ loop, lastSuccess }) =>
            `the loop ${loop} has not succeeded since ${lastSuccess === null ? 'the start' : formatIsoInstant(lastSuccess.atMs)}`,
        ),
    }),
  }
}

const fresh = (now: Moment): State => ({
  lastRound: now,
  lastSuccess: null,
  failures: 0,
  failingSince: now,
  error: null,
})
