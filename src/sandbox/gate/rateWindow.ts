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

/** Arrivals that have left the window are cut off this many at a time, because each cut moves all that stay. */
const cutMin = 1024

/** Arrivals in order of time. Those before `head` have left the window and wait to be cut off. */
interface Admitted {
  timesUs: number[]
  head: number
}

/**
 * A strict sliding window for each client: no interval of `windowUs` holds more than `requests` admitted ones.
 *
 * Refused requests are not counted, or a client that goes on retrying would never get in again. A request costs the
 * same whatever the rate. A client whose last request has left the window is forgotten, because addresses can be made up.
 *
 * @see docs/interface.md, 8: 100 requests per minute on API calls; the scope is not shown, we take the client
 */
export class RateWindow {
  requests: number
  windowUs: number
  readonly #clients = new Map<string, Admitted>()
  /** Goes round over all clients, two steps with each request. */
  #round = this.#clients.entries()

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
   * Tokens are verified between arrival and counting, so a request may be counted after one that arrived later: every
   * window that it would fall into is looked at, not only the one that ends with it.
   *
   * @param countsRefused whether one that is not admitted counts, too
   */
  take(client: string, arrivedUs: number, countsRefused = false): Slot {
    this.#forgetSome(arrivedUs)
    const own = this.#clients.get(client) ?? { timesUs: [], head: 0 }
    this.#leaveBehind(own, arrivedUs)
    const position = Math.max(own.head, own.timesUs.findLastIndex((timeUs) => timeUs <= arrivedUs) + 1)
    const admitted = this.#fits(own, position, arrivedUs)
    if (admitted || countsRefused) own.timesUs.splice(position, 0, arrivedUs)
    if (own.timesUs.length > 0) this.#clients.set(client, own)
    const remaining = this.#room(own, arrivedUs)
    return { admitted, remaining, retryAfterSeconds: admitted ? 0 : this.#waitSeconds(own, arrivedUs) }
  }

  /** Whole seconds until a request of `client` would be admitted; 0: now. Counts nothing. */
  waitSeconds(client: string, nowUs: number): number {
    const own = this.#clients.get(client)
    if (own === undefined) return 0
    return this.#fits(own, own.timesUs.length, nowUs) ? 0 : this.#waitSeconds(own, nowUs)
  }

  /** Takes a request that arrived at `arrivedUs` out of the count. */
  giveBack(client: string, arrivedUs: number): void {
    const own = this.#clients.get(client)
    const position = own?.timesUs.lastIndexOf(arrivedUs) ?? -1
    if (own && position >= own.head) own.timesUs.splice(position, 1)
  }

  /** How many more requests of `client` the window would take, without counting one. */
  remaining(client: string, nowUs: number): number {
    const own = this.#clients.get(client)
    return own === undefined ? this.requests : this.#room(own, nowUs)
  }

  /** Puts back what was admitted before a restart; `arrivalsUs` in order of time. */
  restore(client: string, arrivalsUs: readonly number[]): void {
    this.#clients.set(client, { timesUs: [...arrivalsUs], head: 0 })
  }

  clear(): void {
    this.#clients.clear()
  }

  #room(own: Admitted, nowUs: number): number {
    return Math.max(0, this.requests - this.#countSince(own, nowUs - this.windowUs))
  }

  /** Looks at the next two clients: one more than a request can add, so that the map does not grow without end. */
  #forgetSome(nowUs: number): void {
    for (let looked = 0; looked < 2; looked += 1) {
      const { value: next } = this.#round.next()
      if (next === undefined) {
        this.#round = this.#clients.entries()
        return
      }
      const [client, own] = next
      if (nowUs - (own.timesUs.at(-1) ?? 0) >= this.windowUs + overtakingUs) this.#clients.delete(client)
    }
  }

  #leaveBehind(own: Admitted, nowUs: number): void {
    const { timesUs } = own
    while (own.head < timesUs.length && nowUs - (timesUs[own.head] ?? 0) >= this.windowUs + overtakingUs) own.head += 1
    if (own.head < Math.max(cutMin, timesUs.length / 2)) return
    timesUs.splice(0, own.head)
    own.head = 0
  }

  /** More than `requests` in a window means that some request and the one `requests` places later are closer than it. */
  #fits({ timesUs, head }: Admitted, position: number, arrivedUs: number): boolean {
    const at = (index: number) => (index === position ? arrivedUs : timesUs[index < position ? index : index - 1])
    for (let first = Math.max(head, position - this.requests); first <= position; first += 1) {
      const from = at(first)
      const to = at(first + this.requests)
      if (to === undefined || from === undefined) return true
      if (to - from < this.windowUs) return false
    }
    return true
  }

  /** How many arrived after `afterUs`, found by halving. */
  #countSince({ timesUs, head }: Admitted, afterUs: number): number {
    let [from, to] = [head, timesUs.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((timesUs[middle] ?? 0) > afterUs) to = middle
      else from = middle + 1
    }
    return timesUs.length - from
  }

  #waitSeconds({ timesUs, head }: Admitted, nowUs: number): number {
    const leavingUs = timesUs[Math.max(head, timesUs.length - this.requests)]
    return leavingUs === undefined ? 1 : Math.max(1, Math.ceil((leavingUs + this.windowUs - nowUs) / 1_000_000))
  }
}

/**
 * Windows one after the other, by the clock: each has room for `requests`, whatever came in the window before.
 *
 * @see docs/interface.md, 8: the kind of window is not shown
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
