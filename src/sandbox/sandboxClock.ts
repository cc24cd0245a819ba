import type pg from 'pg'
import type { KeyedMutex } from './storage/keyedMutex.ts'
import { readOrCreateState, writeState } from './storage/sandboxSchema.ts'

/** The latest time; a double holds it to the microsecond. */
export const latestUs = Date.UTC(2200, 0, 1) * 1000

/** What GET /_sandbox/clock shows. */
export interface ClockReading {
  /** ISO 8601 in UTC, to the microsecond. */
  now: string
  /** By how much the clock was moved on, since it last was set back. */
  offsetSeconds: number
  /** Whether it stands still and moves only when it is moved on. */
  stands: boolean
}

interface Kept {
  base: string
  offsetUs: number
}

/**
 * The sandbox's one clock, for arrivals, tokens, windows and processing: the system's time or a moment that stands, plus an
 * offset that is kept in the database.
 *
 * It never steps back while it serves, because a rate limit would let too many through. Setting it back goes with forgetting
 * everything.
 */
export class SandboxClock {
  readonly #pool: pg.Pool
  readonly #mutex: KeyedMutex
  readonly #base: string
  /** Undefined for the system's clock. */
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
   * Goes on from the kept time of a clock with the same base; begins at a different base.
   *
   * @param base what it is when it was not moved on: `system`, or a moment (ISO 8601) at which it stands
   */
  static async open(pool: pg.Pool, mutex: KeyedMutex, base: string): Promise<SandboxClock> {
    const fresh: Kept = { base, offsetUs: 0 }
    const kept = await readOrCreateState(pool, 'clock', fresh)
    return new SandboxClock(pool, mutex, kept.base === base ? kept : fresh)
  }

  /** Now, in whole microseconds since 1970. */
  nowUs(): number {
    return (this.#standsAtUs ?? systemUs()) + this.#offsetUs
  }

  read(): ClockReading {
    const offsetSeconds = this.#offsetUs / 1_000_000
    return { now: preciseTime(this.nowUs()), offsetSeconds, stands: this.#standsAtUs !== undefined }
  }

  /** Moves the clock on. @returns false if it would pass `latestUs`: then it stays */
  advance(seconds: number): Promise<boolean> {
    return this.#move((offsetUs) => offsetUs + Math.round(seconds * 1_000_000))
  }

  /** Sets the clock back to its base. Nothing that has a time of this clock may be left. */
  setBack(): Promise<boolean> {
    return this.#move(() => 0)
  }

  /** One move at a time, so that the clock shows what was written last. */
  async #move(next: (offsetUs: number) => number): Promise<boolean> {
    const release = await this.#mutex.take('clock')
    try {
      const offsetUs = next(this.#offsetUs)
      if (this.nowUs() - this.#offsetUs + offsetUs > latestUs) return false
      await writeState(this.#pool, 'clock', { base: this.#base, offsetUs } satisfies Kept)
      this.#offsetUs = offsetUs
      return true
    } finally {
      release()
    }
  }
}

/** Steady while the process lives, whatever becomes of the system's clock. */
function systemUs(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000)
}

/** The time that the service believes it is. Its answers show it; nothing else uses it. */
export function toldUs(us: number, { clockSkewSeconds }: { clockSkewSeconds: number }): number {
  return us + Math.round(clockSkewSeconds * 1_000_000)
}

/** ISO 8601 in UTC with milliseconds, as the answers carry it. */
export function isoTime(us: number): string {
  return new Date(us / 1000).toISOString()
}

function preciseTime(us: number): string {
  return isoTime(us).replace('Z', `${String(us % 1000).padStart(3, '0')}Z`)
}
