import { type CaptureDeps, type CaptureRound, createCapture } from './capture.ts'
import type { Sleep } from './sleep.ts'

export interface CaptureRoundsDeps {
  capture: CaptureDeps
  sleep: Sleep
  /** Tells the other instances which record types this one has mapping files for. @returns whether that was news */
  publishTypes(types: readonly string[]): Promise<boolean>
  /** On a clock that only goes forward. */
  elapsedMs(): number
  /** In [0, 1), fresh for each call. */
  random(): number
}

/** Captures round after round, and sleeps when there is nothing new. */
export interface CaptureRounds {
  /** One round. @returns after how many milliseconds to begin the next, unless woken before */
  runOnce(): Promise<number>
}

const sayAgainMs = 10_000

export function createCaptureRounds({
  capture,
  sleep,
  publishTypes,
  elapsedMs,
  random,
}: CaptureRoundsDeps): CaptureRounds {
  let took = 0
  let said: string | null = null
  let sayAgainAtMs = 0

  /** What the others have been told is told again now and then: they may have taken this instance for gone. */
  async function sayTypes(types: readonly string[]): Promise<void> {
    const these = JSON.stringify(types)
    if (these === said && elapsedMs() < sayAgainAtMs) return
    if (await publishTypes(types)) said = these
    sayAgainAtMs = elapsedMs() + sayAgainMs
  }

  const { runOnce } = createCapture({
    ...capture,
    onCaptured(records) {
      took += records.length
      capture.onCaptured(records)
    },
  })
  return {
    async runOnce() {
      await sayTypes(capture.knownTypes())
      took = 0
      const round = await runOnce()
      if (round === 'again') sleep.stayAwake()
      else if (round === 'idle') await sleep.fallAsleep(took)
      return waitMs(round, random())
    },
  }
}

function waitMs(round: CaptureRound, random: number): number {
  switch (round) {
    case 'again':
      return 0
    // Sweeps strike on all hosts at the same moment: whoever comes second every time would never have the lock.
    case 'busy':
      return 20 + 80 * random
    case 'waits':
      return 1_000
    // The sweep and the NOTIFY wake it before.
    case 'idle':
      return 60_000
    default:
      return round satisfies never
  }
}
