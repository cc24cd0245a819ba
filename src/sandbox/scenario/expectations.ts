import { type Difference, differences, type LedgerRequest } from './requestMatch.ts'
import type { Expectation } from './scenarioSchema.ts'

/** A request that came near to what was expected, and in what it differs. */
export interface NearMiss {
  sequence: number
  method: string
  path: string
  status: number | 'dropped'
  differences: Difference[]
}

/** What became of an expectation. */
export interface Verdict {
  name: string
  passed: boolean
  /** In words: exactly 1, at least 1, 2 to 3. */
  expected: string
  found: number
  /** The first of those that match, by their sequence in the ledger. */
  sequences: number[]
  /** Where there are too few: the requests that differ least. */
  nearest: NearMiss[]
}

const shownMax = 10
const nearestMax = 3

/** Counts requests for one expectation; nothing is kept of those that do not matter. */
export class Tally {
  readonly #expectation: Expectation
  readonly #number: number
  #found = 0
  readonly #sequences: number[] = []
  #nearest: NearMiss[] = []

  /** @param number from 1, for its name where it has none */
  constructor(expectation: Expectation, number: number) {
    this.#expectation = expectation
    this.#number = number
  }

  see(request: LedgerRequest): void {
    const found = differences(this.#expectation.requests, request)
    if (found.length > 0) {
      this.#seeOther(request, found)
      return
    }
    this.#found += 1
    if (this.#sequences.length < shownMax) this.#sequences.push(request.sequence)
  }

  verdict(): Verdict {
    const { least, most } = bounds(this.#expectation)
    const found = this.#found
    return {
      name: this.#expectation.name ?? `expectation ${this.#number}`,
      passed: found >= least && found <= most,
      expected: words(least, most),
      found,
      sequences: this.#sequences,
      nearest: found < least ? this.#nearest : [],
    }
  }

  /** Near is what has something in common with what was asked for; the first of equals stays. */
  #seeOther({ sequence, method, path, status }: LedgerRequest, found: Difference[]): void {
    if (found.length >= criteria(this.#expectation)) return
    const miss = { sequence, method, path, status: status ?? ('dropped' as const), differences: found }
    this.#nearest = [...this.#nearest, miss]
      .sort((a, b) => a.differences.length - b.differences.length || a.sequence - b.sequence)
      .slice(0, nearestMax)
  }
}

function criteria({ requests: { body = {}, ...others } }: Expectation): number {
  return Object.keys(body).length + Object.values(others).filter((each) => each !== undefined).length
}

function bounds({ count, atLeast, atMost }: Expectation): { least: number; most: number } {
  if (count !== undefined) return { least: count, most: count }
  return { least: atLeast ?? (atMost === undefined ? 1 : 0), most: atMost ?? Number.POSITIVE_INFINITY }
}

function words(least: number, most: number): string {
  if (most === 0) return 'none'
  if (least === most) return `exactly ${least}`
  if (most === Number.POSITIVE_INFINITY) return `at least ${least}`
  return least === 0 ? `at most ${most}` : `${least} to ${most}`
}
