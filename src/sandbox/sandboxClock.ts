import type pg from 'pg'
import { readOrCreateState, writeState } from './storage/sandboxSchema.ts'

/** The sandbox's clock cannot go beyond this time. Until then, a double holds microseconds exactly. */
export const clockMaxUs = Date.UTC(2200, 0, 1) * 1000

export interface SandboxClock {
  nowUs(): number
  read(): { now: string; offsetSeconds: number; stands: boolean }
  /** @returns false, without moving the clock, if it would pass `clockMaxUs` */
  advance(seconds: number): Promise<boolean>
  /** Removes the offset. The caller must first delete all rows with a time of this clock. */
  reset(): Promise<void>
}

/**
 * The system's time or a fixed moment, plus an offset in the database. Keeps the stored offset if `base` has not
 * changed. The clock never goes back, because the rate limit would then admit too many requests.
 * @param base `system`, or a fixed moment (ISO 8601)
 */
export async function createSandboxClock(pool: pg.Pool, base: string): Promise<SandboxClock> {
  const isFixed = base !== 'system'
  const kept = await readOrCreateState(pool, 'clock', { base, offsetUs: 0 })
  let offsetUs = kept.base === base ? kept.offsetUs : 0
  const nowUs = (): number => (isFixed ? Date.parse(base) * 1000 : systemUs()) + offsetUs
  const setOffset = async (changedUs: number): Promise<void> => {
    await writeState(pool, 'clock', { base, offsetUs: changedUs })
    offsetUs = changedUs
  }
  return {
    nowUs,
    read: () => ({ now: formatPreciseTime(nowUs()), offsetSeconds: offsetUs / 1_000_000, stands: isFixed }),
    async advance(seconds) {
      const byUs = Math.round(seconds * 1_000_000)
      if (nowUs() + byUs > clockMaxUs) return false
      await setOffset(offsetUs + byUs)
      return true
    },
    reset: () => setOffset(0),
  }
}

/** Monotonic, even if the system's clock is changed. */
function systemUs(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000)
}

/** Converts the sandbox's time to the time in answers, which may be wrong by the setting `clockSkewSeconds`. */
export function toServiceTimeUs(epochUs: number, { clockSkewSeconds }: { clockSkewSeconds: number }): number {
  return epochUs + Math.round(clockSkewSeconds * 1_000_000)
}

export function formatIsoTime(epochUs: number): string {
  return new Date(epochUs / 1000).toISOString()
}

function formatPreciseTime(epochUs: number): string {
  return formatIsoTime(epochUs).replace('Z', `${String(epochUs % 1000).padStart(3, '0')}Z`)
}
