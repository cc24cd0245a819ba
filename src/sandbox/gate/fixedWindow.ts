import type { Slot } from './rateWindow.ts'

/**
 * Windows one after the other, as the clock has them: each has room for `requests`, whatever came in the one before.
 *
 * @see docs/interface.md, 8: the kind of window is not shown
 */
export class FixedWindow {
  requests: number
  windowUs: number
  #startUs = 0
  /** Of the window that began last; all clients share its beginning. */
  readonly #counts = new Map<string, number>()

  constructor(requests: number, windowUs: number) {
    this.requests = requests
    this.windowUs = windowUs
  }

  /** @param countsRefused whether one that is not admitted counts, too */
  take(client: string, arrivedUs: number, countsRefused = false): Slot {
    const admitted = this.remaining(client, arrivedUs) > 0
    const count = this.#counts.get(client) ?? 0
    if (admitted || countsRefused) this.#counts.set(client, count + 1)
    const remaining = this.remaining(client, arrivedUs)
    return { admitted, remaining, retryAfterSeconds: admitted ? 0 : this.#waitSeconds(arrivedUs) }
  }

  /** How many more requests of `client` the window would take, without counting one. */
  remaining(client: string, nowUs: number): number {
    this.#moveOn(nowUs)
    return Math.max(0, this.requests - (this.#counts.get(client) ?? 0))
  }

  /** Puts back what was admitted before a restart; `arrivalsUs` in order of time. */
  restore(client: string, arrivalsUs: readonly number[]): void {
    this.#moveOn(arrivalsUs.at(-1) ?? 0)
    this.#counts.set(client, arrivalsUs.filter((us) => us >= this.#startUs).length)
  }

  /** A request that was overtaken falls into the window of the one that overtook it. */
  #moveOn(nowUs: number): void {
    const startUs = Math.floor(nowUs / this.windowUs) * this.windowUs
    if (startUs <= this.#startUs) return
    this.#startUs = startUs
    this.#counts.clear()
  }

  #waitSeconds(nowUs: number): number {
    return Math.max(1, Math.ceil((this.#startUs + this.windowUs - nowUs) / 1_000_000))
  }
}
