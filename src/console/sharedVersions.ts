import type { Clock } from '../clock.ts'
import { BoundedMap } from './bounds.ts'
import { shareRecentRead } from './parts.ts'

const versionAgeMs = 2_000
const versionsMax = 1_000

/** Shares the reads of versions among all viewers of a page, by the page's address. */
export class SharedVersions {
  readonly #clock: Pick<Clock, 'stopwatch'>
  readonly #readings = new BoundedMap<string, () => Promise<string>>(versionsMax)

  constructor(clock: Pick<Clock, 'stopwatch'>) {
    this.#clock = clock
  }

  /** @param read is called again when its last result is 2 s old */
  get(address: string, read: () => Promise<string>): Promise<string> {
    const reading = this.#readings.get(address) ?? shareRecentRead(this.#clock, versionAgeMs, read)
    this.#readings.set(address, reading)
    return reading()
  }
}
