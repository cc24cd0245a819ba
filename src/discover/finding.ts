import type { Contract } from '../config.ts'

/**
 * How sure an answer is.
 *
 * - `sure`: two observations agree, and nothing seen contradicts them.
 * - `likely`: one observation, or one instrument (a header, a clock) that something else could explain.
 * - `unknown`: the answers can be read in more than one way, or in none.
 * - `not asked`: it could not be asked, or an option was not given.
 */
export type Certainty = 'sure' | 'likely' | 'unknown' | 'not asked'

export const certaintyOf = (observations: number): 'sure' | 'likely' => (observations > 1 ? 'sure' : 'likely')

export interface Setting {
  variable: string
  value: string
  why: string
}

export interface Finding {
  /** A few words, or a value; null if nothing was found out. */
  found: string | null
  certainty: Certainty
  /** The observations, or why it was not asked. */
  why: string
  /** The daemon's assumption with its present settings; null if nothing depends on it. */
  assumed: string | null
  /** True if the service behaves differently. */
  differs: boolean
  set: readonly Setting[]
  advice: readonly string[]
  /** The part that the daemon cannot handle; null if it handles the answer. */
  cannot: string | null
  contract: Contract
}

type More = Partial<Omit<Finding, 'found' | 'certainty' | 'why'>>

const nothingMore = { assumed: null, differs: false, set: [], advice: [], cannot: null, contract: {} }

export const createFinding = (certainty: 'sure' | 'likely', what: string, why: string, more: More = {}): Finding => ({
  ...nothingMore,
  ...more,
  found: what,
  certainty,
  why,
})

export const sureFinding = (what: string, why: string, more: More = {}): Finding =>
  createFinding('sure', what, why, more)

export const likelyFinding = (what: string, why: string, more: More = {}): Finding =>
  createFinding('likely', what, why, more)

export const unknownFinding = (why: string, more: More = {}): Finding => ({
  ...nothingMore,
  ...more,
  found: null,
  certainty: 'unknown',
  why,
})

export const notAskedFinding = (why: string): Finding => ({ ...unknownFinding(why), certainty: 'not asked' })

export const showMs = (ms: number): string => (ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`)
