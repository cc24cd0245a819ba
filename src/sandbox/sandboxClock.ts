import type pg from 'pg'
import type { KeyedMutex } from './storage/keyedMutex.ts'
import { readOrCreateState, writeState } from './storage/sandboxSchema.ts'

/** A bound well within the times that a double holds to the microsecond. */
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
 * The sandbox's one clock, for arrivals, tokens, windows and processing alike: the system's or a moment that stands, plus what
 * it was moved on by. That is kept in the database, so that a restart changes nothing.
 *
 * It never steps back while it serves, because a rate limit counted on a clock that does would let too many through; setting it
 * back goes with forgetting everything.
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
   * Goes on from where a clock with the same base was; with another base it begins there.
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

  /** Moves the clock on. @returns false where it would come past `latestUs`, and stays */
  advance(seconds: number): Promise<boolean> {
    return this.#move((offsetUs) => offsetUs + Math.round(seconds * 1_000_000))
  }

  /** Back to its base. Only where nothing is left that has a time of this clock. */
  setBack(): Promise<boolean> {
    return this.#move(() => 0)
  }

  /** One after the other: what is written last is what it shows. */
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

/** The time that the service believes it is: its answers say it, and nothing goes by it. */
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
