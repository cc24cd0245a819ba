export interface Slot {
  admitted: boolean
  remaining: number
  retryAfterSeconds: number
}

/** A request may be counted this much later than it arrived, while its token is verified. */
const overtakingUs = 1_000_000

/** Above this number, idle clients are dropped, because addresses can be invented. */
const clientsMax = 10_000

/**
 * A strict sliding window per client: no interval of `windowUs` has more than `requests` admitted ones. Refused
 * requests do not count, so that a client that retries gets in again.
 *
 * @see docs/reference/interface.md, 8
 */
export class RateWindow {
  requests: number
  windowUs: number
  readonly #clients = new Map<string, number[]>()

  constructor(requests: number, windowUs: number) {
    this.requests = requests
    this.windowUs = windowUs
  }

  get clients(): number {
    return this.#clients.size
  }

  /**
   * Counts a request if every window around it has room. Later arrivals may have been counted while its token was
   * verified.
   *
   * @param countsRefused true if a refused request counts, too
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

  remaining(client: string, nowUs: number): number {
    return this.#room(this.#clients.get(client) ?? [], nowUs)
  }

  giveBack(client: string, arrivedUs: number): void {
    const times = this.#clients.get(client) ?? []
    const position = times.lastIndexOf(arrivedUs)
    if (position >= 0) times.splice(position, 1)
  }

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

  /** Drops old times only when they are half of all, because each cut moves the rest. */
  #leaveBehind(times: number[], nowUs: number): void {
    const leftUs = nowUs - this.windowUs - overtakingUs
    if ((times[times.length >>> 1] ?? nowUs) <= leftUs) times.splice(0, countUntil(times, leftUs))
  }

  /** Checks that each request and the one `requests` places later are at least a window apart. */
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

function countUntil(times: readonly number[], untilUs: number): number {
  let [from, to] = [0, times.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((times[middle] ?? 0) > untilUs) to = middle
    else from = middle + 1
  }
  return from
}

/** Consecutive windows by the clock, each with room for `requests`. @see docs/reference/interface.md, 8 */
export class FixedWindow {
  requests: number
  windowUs: number
  #startUs = 0
  readonly #counts = new Map<string, number>()

  constructor(requests: number, windowUs: number) {
    this.requests = requests
    this.windowUs = windowUs
  }

  take(client: string, arrivedUs: number, countsRefused = false): Slot {
    const admitted = this.remaining(client, arrivedUs) > 0
    const count = this.#counts.get(client) ?? 0
    if (admitted || countsRefused) this.#counts.set(client, count + 1)
    const remaining = this.remaining(client, arrivedUs)
    return { admitted, remaining, retryAfterSeconds: admitted ? 0 : this.#waitSeconds(arrivedUs) }
  }

  giveBack(client: string, arrivedUs: number): void {
    if (arrivedUs >= this.#startUs) this.#counts.set(client, Math.max(0, (this.#counts.get(client) ?? 0) - 1))
  }

  remaining(client: string, nowUs: number): number {
    this.#moveOn(nowUs)
    return Math.max(0, this.requests - (this.#counts.get(client) ?? 0))
  }

  restore(client: string, arrivalsUs: readonly number[]): void {
    this.#moveOn(arrivalsUs.at(-1) ?? 0)
    this.#counts.set(client, arrivalsUs.filter((us) => us >= this.#startUs).length)
  }

  /** Never goes back, so that an overtaken request counts in the later window. */
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
