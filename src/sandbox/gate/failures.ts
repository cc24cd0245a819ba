import { type Answer, problem } from '../endpoints/problemAnswer.ts'
import { RateWindow } from './rateWindow.ts'

const minuteUs = 60_000_000

/**
 * Bounds what somebody may do who has not shown who he is: so many requests in a minute without a valid token or with a wrong
 * secret, from one address. After that a right secret does not help him either, so none can be found by trying.
 */
export class Failures {
  readonly #window: RateWindow
  readonly #allowed: () => number

  /** @param allowed how many in a minute, as it is now */
  constructor(allowed: () => number) {
    this.#allowed = allowed
    this.#window = new RateWindow(allowed(), minuteUs)
  }

  /** What to answer to `who`, an address, before looking at his credentials; undefined where he may try. */
  refusal(who: string, nowUs: number): Answer | undefined {
    this.#window.requests = this.#allowed()
    return tooMany(this.#window.waitSeconds(who, nowUs))
  }

  /** Counts a failure. @returns what to answer instead of saying what is wrong, where there were too many before it */
  count(who: string, nowUs: number): Answer | undefined {
    this.#window.requests = this.#allowed()
    return tooMany(this.#window.take(who, nowUs).retryAfterSeconds)
  }

  clear(): void {
    this.#window.clear()
  }
}

function tooMany(waitSeconds: number): Answer | undefined {
  if (waitSeconds === 0) return undefined
  const detail = `Too many requests without valid credentials came from this address in the last minute: wait ${waitSeconds} s.`
  return problem(429, detail, {}, { 'retry-after': String(waitSeconds) })
}
