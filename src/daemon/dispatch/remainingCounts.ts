import type { Clock } from '../../clock.ts'
import type { Endpoint } from '../../resources.ts'

/** Counts this close in time are compared: too little time for another client to spend a part of the limit. */
const nearMs = 2_000

interface Seen {
  endpoint: Endpoint
  ageMs: () => number
}

/**
 * Tells another client of the limit from an endpoint that has a limit of its own: if one endpoint states far fewer
 * remaining requests than are free, while another states as many, the first has its own limit.
 */
export class RemainingCounts {
  readonly #clock: Pick<Clock, 'stopwatch'>
  readonly #limit: number
  readonly #withOwnLimit = new Set<Endpoint>()
  #low: Seen | null = null
  #enough: Seen | null = null

  constructor(clock: Pick<Clock, 'stopwatch'>, limit: number) {
    this.#clock = clock
    this.#limit = limit
  }

  /**
   * @param free requests that are free as far as this instance knows
   * @returns false if the count says nothing about other clients
   */
  isOfSharedLimit(endpoint: Endpoint, remaining: number | null, free: number): boolean {
    if (remaining === null) return true
    const seen = { endpoint, ageMs: this.#clock.stopwatch() }
    if (remaining >= free - Math.max(2, this.#limit * 0.05)) {
      if (free >= this.#limit / 2) this.#withOwnLimit.delete(endpoint)
      if (isNearOther(this.#low, endpoint)) this.#withOwnLimit.add(this.#low.endpoint)
      this.#enough = seen
      return true
    }
    if (isNearOther(this.#enough, endpoint)) this.#withOwnLimit.add(endpoint)
    this.#low = seen
    return !this.#withOwnLimit.has(endpoint)
  }
}

const isNearOther = (seen: Seen | null, endpoint: Endpoint): seen is Seen =>
  seen !== null && seen.endpoint !== endpoint && seen.ageMs() < nearMs
