import type pg from 'pg'
import type { KeyedMutex } from './storage/keyedMutex.ts'
import { readOrCreateState, writeState } from './storage/sandboxSchema.ts'

/** Before 2200 a double is exact to the microsecond. */
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
 * The sandbox's clock: the system's time or a fixed moment, plus an offset in the database. It never steps back,
 * because a rate limit would then admit too many.
 */
export class SandboxClock {
  readonly #pool: pg.Pool
  readonly #mutex: KeyedMutex
  readonly #base: string
  readonly #standsAtUs: number | undefined
  #offsetUs: number

  private constructor(pool: pg.Pool, mutex: KeyedMutex, { base, offsetUs }: Kept) {
    this.#pool = pool
    this.#mutex = mutex
    this.#base = base
    this.#standsAtUs = base === 'system' ? undefined : Date.parse(base) * 1000
    this.#offsetUs = offsetUs
  }

  /**
   * Continues from the stored offset if the base is the same.
   * @param base `system`, or a fixed moment (ISO 8601)
   */
  static async open(pool: pg.Pool, mutex: KeyedMutex, base: string): Promise<SandboxClock> {
    const fresh: Kept = { base, offsetUs: 0 }
    const kept = await readOrCreateState(pool, 'clock', fresh)
    return new SandboxClock(pool, mutex, kept.base === base ? kept : fresh)
  }

  nowUs(): number {
    return (this.#standsAtUs ?? systemUs()) + this.#offsetUs
  }

  read(): ClockReading {
    const offsetSeconds = this.#offsetUs / 1_000_000
    return { now: preciseTime(this.nowUs()), offsetSeconds, stands: this.#standsAtUs !== undefined }
  }

  /** @returns false, without a move, if it would pass `latestClockUs` */
  advance(seconds: number): Promise<boolean> {
    return this.#move((offsetUs) => offsetUs + Math.round(seconds * 1_000_000))
  }

  /** Delete everything with a time of this clock first. */
  setBack(): Promise<boolean> {
    return this.#move(() => 0)
  }

  /** Allows one move at a time, so that memory and database agree. */
  async #move(next: (offsetUs: number) => number): Promise<boolean> {
    const release = await this.#mutex.take('clock')
    try {
      const offsetUs = next(this.#offsetUs)
      if (this.nowUs() - this.#offsetUs + offsetUs > latestClockUs) return false
      await writeState(this.#pool, 'clock', { base: this.#base, offsetUs } satisfies Kept)
      this.#offsetUs = offsetUs
      return true
    } finally {
      release()
    }
  }
}

/** Monotonic, also if the system's clock is changed. */
function systemUs(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000)
}

/** The time by the service's clock, which only its answers show. */
export function toServiceUs(us: number, { clockSkewSeconds }: { clockSkewSeconds: number }): number {
  return us + Math.round(clockSkewSeconds * 1_000_000)
}

export function isoTime(us: number): string {
  return new Date(us / 1000).toISOString()
}

function preciseTime(us: number): string {
  return isoTime(us).replace('Z', `${String(us % 1000).padStart(3, '0')}Z`)
}
