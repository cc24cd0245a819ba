import type { Readiness } from '../observe/httpServer.ts'

/** A loop that has failed for a while, or hangs. */
export interface FailingLoop {
  loop: string
  /** What it failed with last, or that it hangs. */
  error: unknown
}

/** How the loops are: for /livez, /readyz and `outboxd status`. */
export interface LoopHealth {
  started(loop: string): void
  succeeded(loop: string): void
  failed(loop: string, error: unknown): void
  /** Those that fail again and again, or have for a while, or do not come round any more. */
  failing(): FailingLoop[]
  live(): Readiness
  /** @param needed the loops without which no record gets on */
  ready(needed: readonly string[]): Readiness
}

interface State {
  lastRoundMs: number
  lastSuccessMs: number | null
  failures: number
  failingSinceMs: number
  error: unknown
}

const stuckMs = 120_000
const staleMs = 30_000

/** A failure or two in a moment may pass; three in a row, or 10 s of them, are told. */
const failuresToTell = 3
const failingToTellMs = 10_000

export function createLoopHealth({ nowMs }: { nowMs(): number }): LoopHealth {
  const states = new Map<string, State>()
  const stateOf = (loop: string): State => states.get(loop) ?? fresh(nowMs())
  const stuck = () =>
    [...states]
      .map(([loop, { lastRoundMs }]) => ({ loop, lastRoundMs }))
      .filter(({ lastRoundMs }) => lastRoundMs < nowMs() - stuckMs)
  return {
    started: (loop) => void states.set(loop, fresh(nowMs())),
    succeeded: (loop) => void states.set(loop, { ...fresh(nowMs()), lastSuccessMs: nowMs() }),
    failed(loop, error) {
      const { failures, failingSinceMs, lastSuccessMs } = stateOf(loop)
      states.set(loop, {
        lastRoundMs: nowMs(),
        lastSuccessMs,
        failures: failures + 1,
        failingSinceMs: failures === 0 ? nowMs() : failingSinceMs,
        error,
      })
    },
    failing: () => [
      ...[...states]
        .filter(
          ([, { failures, failingSinceMs }]) =>
            failures >= failuresToTell || (failures > 0 && nowMs() - failingSinceMs >= failingToTellMs),
        )
        .map(([loop, { error }]) => ({ loop, error })),
      ...stuck().map(({ loop, lastRoundMs }) => ({
        loop,
        error: new Error(`it hangs: it last came round at ${isoTime(lastRoundMs)}`),
      })),
    ],
    live: () => ({
      reasons: stuck().map(({ loop, lastRoundMs }) => `the loop ${loop} is stuck since ${isoTime(lastRoundMs)}`),
    }),
    ready: (needed) => ({
      reasons: needed
        .map((loop) => ({ loop, lastSuccessMs: stateOf(loop).lastSuccessMs }))
        .filter(({ lastSuccessMs }) => lastSuccessMs === null || lastSuccessMs < nowMs() - staleMs)
        .map(
          ({ loop, lastSuccessMs }) =>
            `the loop ${loop} has not succeeded since ${lastSuccessMs === null ? 'the start' : isoTime(lastSuccessMs)}`,
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

const isoTime = (ms: number) => new Date(ms).toISOString()
