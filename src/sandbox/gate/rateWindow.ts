/** What became of one request's claim to be counted. */
export interface Slot {
  admitted: boolean
  /** How many more requests the window would take now: the value of X-RateLimit-Remaining. */
  remaining: number
  /** Whole seconds until the next request would be admitted; 0: now. */
  retryAfterSeconds: number
}

/** By how much a request that arrived earlier may be counted later, while its token is verified. */
const overtakingUs = 1_000_000

/** With more clients than this, those whose requests have all left the window are forgotten: addresses can be made up. */
const clientsMax = 10_000

/**
 * A strict sliding window for each client: no interval of `windowUs` holds more than `requests` admitted ones. Refused
 * requests do not count, or a client that goes on retrying would never get in again.
 *
 * @see docs/reference/interface.md, 8: the scope is not shown, we take the client
 */
export class RateWindow {
  requests: number
  windowUs: number
  /** Arrivals in order of time. */
  readonly #clients = new Map<string, number[]>()

  constructor(requests: number, windowUs: number) {
    this.requests = requests
    this.windowUs = windowUs
  }

  /** How many clients it remembers. */
  get clients(): number {
    return this.#clients.size
  }

  /**
   * Counts a request of `client` that arrived at `arrivedUs`, if there is room for it.
   *
   * While its token was verified, a later request may have been counted: every window that it would fall into is looked at.
   *
   * @param countsRefused whether one that is not admitted counts, too
   */
  take(client: string, arrivedUs: number, countsRefused = false): Slot {
    if (this.#clients.size > clientsMax) this.#forgetIdle(arrivedUs)
    const times = this.#clients.get(client) ?? []
    this.#leaveBehind(times, arrivedUs)
    const position = times.findLastIndex((timeUs) => timeUs <= arrivedUs) + 1
    const admitted = this.#fits(times, position, arrivedUs)
    if (admitted || countsRefused) times.splice(position, 0, arrivedUs)
    if (times.length > 0) this.#clients.set(client, times)
    const remaining = this.#room(times, arrivedUs)
    return { admitted, remaining, retryAfterSeconds: admitted ? 0 : this.#waitSeconds(times, arrivedUs) }
  }

  /** How many more requests of `client` the window would take, without counting one. */
  remaining(client: string, nowUs: number): number {
    return this.#room(this.#clients.get(client) ?? [], nowUs)
  }

  /** Takes a request that arrived at `arrivedUs` out of the count. */
  giveBack(client: string, arrivedUs: number): void {
    const times = this.#clients.get(client) ?? []
    const position = times.lastIndexOf(arrivedUs)
    if (position >= 0) times.splice(position, 1)
  }

  /** Puts back what was admitted before a restart; `arrivalsUs` in order of time. */
  restore(client: string, arrivalsUs: readonly number[]): void {
    this.#clients.set(client, [...arrivalsUs])
  }

  #room(times: readonly number[], nowUs: number): number {
    return Math.max(0, this.requests - (times.length - countUntil(times, nowUs - this.windowUs)))
  }

  #forgetIdle(nowUs: number): void {
    for (const [client, times] of this.#clients) {
      if ((times.at(-1) ?? 0) <= nowUs - this.windowUs - overtakingUs) this.#clients.delete(client)
    }
  }

  /** Cuts off what has left the window once it is half of all, because each cut moves all that stay. */
  #leaveBehind(times: number[], nowUs: number): void {
    const leftUs = nowUs - this.windowUs - overtakingUs
    if ((times[times.length >>> 1] ?? nowUs) <= leftUs) times.splice(0, countUntil(times, leftUs))
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
    const leavingUs = times[Math.max(0, times.length - this.requests)]
    return leavingUs === undefined ? 1 : Math.max(1, Math.ceil((leavingUs + this.windowUs - nowUs) / 1_000_000))
  }
}

/** How many of the times are not after `untilUs`, found by halving. */
function countUntil(times: readonly number[], untilUs: number): number {
  let [from, to] = [0, times.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((times[middle] ?? 0) > untilUs) to = middle
    else from = middle + 1
  }
  return from
}

/**
 * Windows one after the other, by the clock: each has room for `requests`, whatever came in the window before.
 *
 * @see docs/reference/interface.md, 8: the kind of window is not shown
 */
export class FixedWindow {
  requests: number
  windowUs: number
  #startUs = 0
  /** Counts in the current window, which is the same for all clients. */
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

  /** Takes a request that arrived at `arrivedUs` out of the count, if its window is still the current one. */
  giveBack(client: string, arrivedUs: number): void {
    if (arrivedUs >= this.#startUs) this.#counts.set(client, Math.max(0, (this.#counts.get(client) ?? 0) - 1))
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
