import type { Contract } from '../config.ts'
import type { Exchange } from './exchange.ts'
import type { QuestionContext } from './questionContext.ts'

export interface QuestionOptions {
  /** If `customer` and `record` are both null, no record is created. */
  customer: string | null
  unknownCustomer: string | null
  orderCustomer: string | null
  /** The body from `--record`; null for the built-in test record. */
  record: RequestBody | null
  order: RequestBody | null
  slow: boolean
  rate: boolean
  size: boolean
}

/** Its numbers keep their digits. */
export type RequestBody = Readonly<Record<string, unknown>>

export type NeededOption = Exclude<keyof QuestionOptions, 'record' | 'order'>

/** A question that docs/reference/interface.md leaves open (docs/why/contract.md). */
export interface Question {
  /** Must not change, because users give it to `--only` and read it in `--json`. */
  name: string
  /** The section of docs/reference/interface.md that leaves the question open. */
  section: string
  asks: string
  /** What the answer settles: a variable, a part of the mapping or advice. */
  decides: string
  assumed: string
  needs: readonly NeededOption[]
  /** True if the question creates nothing, so that production may be asked. */
  harmless: boolean
  run(parts: QuestionContext): Promise<Finding>
}

/** Shared by several questions. Its requests are sent only once. */
export interface Sample<T> {
  name: string
  take(parts: QuestionContext): Promise<T>
}

/**
 * How sure a finding is.
 *
 * - `sure`: two observations agree, and no answer contradicts them.
 * - `likely`: only one observation, or only a header or a clock, which may have another cause.
 * - `unknown`: the answers can be read in more than one way, or in none.
 * - `not asked`: the question could not be asked, or an option was not given.
 */
type Certainty = 'sure' | 'likely' | 'unknown' | 'not asked'

export interface Setting {
  variable: string
  value: string
  why: string
}

export interface Finding {
  /** A few words, or a value; null if nothing was found out. */
  found: string | null
  certainty: Certainty
  /** The observations, or why the question was not asked. */
  why: string
  /** True if the service does not behave as the daemon assumes. */
  differs: boolean
  set: readonly Setting[]
  advice: readonly string[]
  /** Null if the daemon can handle the answer. */
  cannot: string | null
  contract: Contract
}

type More = Partial<Omit<Finding, 'found' | 'certainty' | 'why'>>

function createFinding(certainty: Certainty, found: string | null, why: string, more: More): Finding {
  return { differs: false, set: [], advice: [], cannot: null, contract: {}, ...more, found, certainty, why }
}

export const sureFinding = (found: string, why: string, more: More = {}): Finding =>
  createFinding('sure', found, why, more)

export const likelyFinding = (found: string, why: string, more: More = {}): Finding =>
  createFinding('likely', found, why, more)

export const unknownFinding = (why: string, more: More = {}): Finding => createFinding('unknown', null, why, more)

export const notAskedFinding = (why: string): Finding => createFinding('not asked', null, why, {})

export type { QuestionContext }

export type RequestHeaders = Readonly<Record<string, string>>

export interface Throttle {
  refused: Exchange
  waitedMs: number
}

export class NoUsableAnswer extends Error {
  override name = 'NoUsableAnswer'
}

export class CannotAsk extends Error {
  override name = 'CannotAsk'
}

export class QuestionsStopped extends Error {
  override name = 'QuestionsStopped'
}
