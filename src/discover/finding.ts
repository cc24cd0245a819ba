import type { Contract } from '../config.ts'

/** How sure an answer is. `not asked`: nobody could, may, or wanted to ask. */
export type Certainty = 'sure' | 'likely' | 'unknown' | 'not asked'

/** A variable that follows from what was found. */
export interface Setting {
  variable: string
  value: string
  why: string
}

/** What came of a question. */
export interface Finding {
  /** In a word or a few, of a set that its question lists, or a value; null where nothing was found out. */
  found: string | null
  certainty: Certainty
  /** What was seen, or why nobody asked. */
  why: string
  /** What the daemon assumes as it is configured now; null where nothing depends on it. */
  assumed: string | null
  /** Whether that is otherwise. */
  differs: boolean
  /** The variables that follow. */
  set: readonly Setting[]
  /** What else follows, as for a mapping. */
  advice: readonly string[]
  /** With what of it the daemon could not cope; null where it copes. */
  cannot: string | null
  /** What the service is held to later: pairs of DISCOVERED_CONTRACT. */
  contract: Contract
}

type More = Partial<Omit<Finding, 'found' | 'certainty' | 'why'>>

const nothingMore = { assumed: null, differs: false, set: [], advice: [], cannot: null, contract: {} }

export const sure = (found: string, why: string, more: More = {}): Finding => ({
  ...nothingMore,
  ...more,
  found,
  certainty: 'sure',
  why,
})

export const likely = (found: string, why: string, more: More = {}): Finding => ({
  ...sure(found, why, more),
  certainty: 'likely',
})

/** It was asked, and the answer can be read in more than one way, or in none. */
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
