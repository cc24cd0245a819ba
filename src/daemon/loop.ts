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

export async function runEachStep(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = []
  for (const step of steps) await step().catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
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

interface State {
  lastRoundMs: number
  lastSuccessMs: number | null
  failures: number
  failingSinceMs: number
  error: unknown
}

const stuckMs = 120_000
const staleMs = 30_000

/** A loop is reported after this many failures in a row, or after `failingToTellMs`. */
const failuresToTell = 3
const failingToTellMs = 10_000

export function createLoopHealth({ nowMs }: { nowMs(): number }) {
  const states = new Map<string, State>()
  const stateOf = (loop: string): State => states.get(loop) ?? fresh(nowMs())
  const stuck = () =>
    [...states]
      .map(([loop, { lastRoundMs }]) => ({ loop, lastRoundMs }))
      .filter(({ lastRoundMs }) => lastRoundMs < nowMs() - stuckMs)
  return {
    started: (loop: string): void => void states.set(loop, fresh(nowMs())),
    succeeded: (loop: string): void => void states.set(loop, { ...fresh(nowMs()), lastSuccessMs: nowMs() }),
    failed(loop: string, error: unknown): void {
      const { failures, failingSinceMs, lastSuccessMs } = stateOf(loop)
      states.set(loop, {
        lastRoundMs: nowMs(),
        lastSuccessMs,
        failures: failures + 1,
        failingSinceMs: failures === 0 ? nowMs() : failingSinceMs,
        error,
      })
    },
    failing: (): FailingLoop[] => [
      ...[...states]
        .filter(
          ([, { failures, failingSinceMs }]) =>
            failures >= failuresToTell || (failures > 0 && nowMs() - failingSinceMs >= failingToTellMs),
        )
        .map(([loop, { error }]) => ({ loop, error })),
      ...stuck().map(({ loop, lastRoundMs }) => ({
        loop,
        error: new Error(`the loop hangs: its last round ended at ${formatIsoInstant(lastRoundMs)}`),
      })),
    ],
    live: (): Readiness => ({
      reasons: stuck().map(
        ({ loop, lastRoundMs }) => `the loop ${loop} has been stuck since ${formatIsoInstant(lastRoundMs)}`,
      ),
    }),
    ready: (needed: readonly string[]): Readiness => ({
      reasons: needed
        .map((loop) => ({ loop, lastSuccessMs: stateOf(loop).lastSuccessMs }))
        .filter(({ lastSuccessMs }) => lastSuccessMs === null || lastSuccessMs < nowMs() - staleMs)
        .map(
          ({ loop, lastSuccessMs }) =>
            `the loop ${loop} has not succeeded since ${lastSuccessMs === null ? 'the start' : formatIsoInstant(lastSuccessMs)}`,
        ),
    }),
  }
}

const fresh = (nowMs: number): State => ({
  lastRoundMs: nowMs,
  lastSuccessMs: null,
  failures: 0,
  failingSinceMs: nowMs,
  error: null,
})
