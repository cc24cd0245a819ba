import type pg from 'pg'
import { readOrCreateState, writeState } from './storage/sandboxSchema.ts'

/** The clock cannot go beyond this time. Until then, a double holds microseconds exactly. */
export const latestClockUs = Date.UTC(2200, 0, 1) * 1000

export interface ClockReading {
  now: string
  offsetSeconds: number
  stands: boolean
}

interface Kept {
  base: string
  offsetUs: number
}

/**
 * The sandbox's clock: the system's time or a fixed moment, plus an offset in the database. The clock never steps back,
 * because the rate limit would then admit too many requests.
 */
export class SandboxClock {
  readonly #pool: pg.Pool
  readonly #base: string
  readonly #standsAtUs: number | undefined
  #offsetUs: number

  private constructor(pool: pg.Pool, { base, offsetUs }: Kept) {
    this.#pool = pool
    this.#base = base
    this.#standsAtUs = base === 'system' ? undefined : Date.parse(base) * 1000
    this.#offsetUs = offsetUs
  }

  /**
   * Continues from the stored offset if the base is the same.
   * @param base `system`, or a fixed moment (ISO 8601)
   */
  static async open(pool: pg.Pool, base: string): Promise<SandboxClock> {
    const fresh: Kept = { base, offsetUs: 0 }
    const kept = await readOrCreateState(pool, 'clock', fresh)
    return new SandboxClock(pool, kept.base === base ? kept : fresh)
  }

  nowUs(): number {
    return (this.#standsAtUs ?? systemUs()) + this.#offsetUs
  }

  read(): ClockReading {
    const offsetSeconds = this.#offsetUs / 1_000_000
    return { now: preciseTime(this.nowUs()), offsetSeconds, stands: this.#standsAtUs !== undefined }
  }

  /** @returns false if the clock would pass `latestClockUs`; it then does not move */
  async advance(seconds: number): Promise<boolean> {
    const byUs = Math.round(seconds * 1_000_000)
    if (this.nowUs() + byUs > latestClockUs) return false
    await this.#move(this.#offsetUs + byUs)
    return true
  }

  /** Removes the offset. The caller must first delete all rows that have a time of this clock. */
  reset(): Promise<void> {
    return this.#move(0)
  }

  async #move(offsetUs: number): Promise<void> {
    await writeState(this.#pool, 'clock', { base: this.#base, offsetUs } satisfies Kept)
    this.#offsetUs = offsetUs
  }
}

/** Monotonic, also if the system's clock is changed. */
function systemUs(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000)
}

/** Converts the sandbox's time to the service's, which may be wrong by `clockSkewSeconds`. Only answers show it. */
export function toServiceUs(us: number, { clockSkewSeconds }: { clockSkewSeconds: number }): number {
  return us + Math.round(clockSkewSeconds * 1_000_000)
}

export function formatIsoTime(us: number): string {
  return new Date(us / 1000).toISOString()
}

function preciseTime(us: number): string {
  return formatIsoTime(us).replace('Z', `${String(us % 1000).padStart(3, '0')}Z`)
}
