import type { Contract } from '../config.ts'

/**
 * How sure an answer is.
 *
 * - `sure`: two observations agree, and nothing seen contradicts them.
 * - `likely`: one observation, or one instrument (a header, a clock) that something else could explain.
 * - `unknown`: asked, and the answers can be read in more than one way, or in none.
 * - `not asked`: it cannot, must not or was not to be asked.
 */
export type Certainty = 'sure' | 'likely' | 'unknown' | 'not asked'

/** A variable that follows from what was found. */
export interface Setting {
  variable: string
  value: string
  why: string
}

/** The answer to a question. */
export interface Finding {
  /** A word or a few, of a set that its question lists, or a value; null if nothing was found out. */
  found: string | null
  certainty: Certainty
  /** What was seen, or why it was not asked. */
  why: string
  /** What the daemon assumes as it is configured now; null if nothing depends on it. */
  assumed: string | null
  /** Whether the service does otherwise. */
  differs: boolean
  /** The variables that follow. */
  set: readonly Setting[]
  /** What else follows, as for a mapping. */
  advice: readonly string[]
  /** What the daemon cannot cope with; null if it copes. */
  cannot: string | null
  /** What the service is held to later: pairs of DISCOVERED_CONTRACT. */
  contract: Contract
}

type More = Partial<Omit<Finding, 'found' | 'certainty' | 'why'>>

const nothingMore = { assumed: null, differs: false, set: [], advice: [], cannot: null, contract: {} }

export const found = (certainty: 'sure' | 'likely', what: string, why: string, more: More = {}): Finding => ({
  ...nothingMore,
  ...more,
  found: what,
  certainty,
  why,
})

export const sure = (what: string, why: string, more: More = {}): Finding => found('sure', what, why, more)

export const likely = (what: string, why: string, more: More = {}): Finding => found('likely', what, why, more)

export const unknown = (why: string, more: More = {}): Finding => ({
  ...nothingMore,
  ...more,
  found: null,
  certainty: 'unknown',
  why,
})

export const notAsked = (why: string, more: More = {}): Finding => ({ ...unknown(why, more), certainty: 'not asked' })

/** Milliseconds for people: `12 ms`, `1.5 s`. */
export const showMs = (ms: number): string => (ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`)
