/** What became of one request's claim to be counted. */
export interface Slot {
  admitted: boolean
  /** How many more requests the window would take now: the value of X-RateLimit-Remaining. */
  remaining: number
  /** Whole seconds, at least 1, until the next one would be admitted; 0 where that is now. */
  retryAfterSeconds: number
}

/** By how much a request that arrived earlier may be counted later, while its token is verified. */
const overtakingUs = 1_000_000

/**
 * A strict sliding window for each client: no interval of `windowUs` holds more than `requests` admitted ones.
 *
 * Refused requests are not counted, or a client that retries under its limit would never get in again.
 *
 * @see docs/interface.md, 8: 100 requests per minute on API calls; the scope is not shown, we take the client
 */
export class RateWindow {
  requests: number
  windowUs: number
  readonly #admitted = new Map<string, number[]>()

  constructor(requests: number, windowUs: number) {
    this.requests = requests
    this.windowUs = windowUs
  }

  /**
   * Counts a request of `client` that arrived at `arrivedUs`, if there is room for it.
   *
   * Tokens are verified between arrival and counting, so a request may be counted after one that arrived later: every
   * window that it would fall into is looked at, not only the one that ends with it.
   */
  take(client: string, arrivedUs: number): Slot {
    const times = this.#timesOf(client, arrivedUs)
    const position = times.findLastIndex((time) => time <= arrivedUs) + 1
    const admitted = this.#fits(times, position, arrivedUs)
    if (admitted) times.splice(position, 0, arrivedUs)
    const live = times.length - times.findIndex((time) => arrivedUs - time < this.windowUs)
    const counted = live > times.length ? 0 : live
    const remaining = Math.max(0, this.requests - counted)
    return { admitted, remaining, retryAfterSeconds: admitted ? 0 : this.#waitSeconds(times, arrivedUs) }
  }

  /** Puts back what was admitted before a restart; `arrivalsUs` in order of time. */
  restore(client: string, arrivalsUs: readonly number[]): void {
    this.#admitted.set(client, [...arrivalsUs])
  }

  clear(): void {
    this.#admitted.clear()
  }

  #timesOf(client: string, nowUs: number): number[] {
    const times = this.#admitted.get(client) ?? []
    this.#admitted.set(client, times)
    const firstKept = times.findIndex((time) => nowUs - time < this.windowUs + overtakingUs)
    times.splice(0, firstKept === -1 ? times.length : firstKept)
    return times
  }

  /** More than `requests` in a window means that some request and the one `requests` places later are closer than it. */
  #fits(times: readonly number[], position: number, arrivedUs: number): boolean {
    const at = (index: number) => (index === position ? arrivedUs : times[index < position ? index : index - 1])
    for (let first = Math.max(0, position - this.requests); first <= position; first += 1) {
      const from = at(first)
      const to = at(first + this.requests)
      if (to === undefined || from === undefined) return true
      if (to - from < this.windowUs) return false
    }
    return true
  }

  #waitSeconds(times: readonly number[], nowUs: number): number {
    const leaving = times[Math.max(0, times.length - this.requests)]
    return leaving === undefined ? 1 : Math.max(1, Math.ceil((leaving + this.windowUs - nowUs) / 1_000_000))
  }
}
