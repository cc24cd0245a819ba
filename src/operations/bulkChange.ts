import { type ListedSubmission, selectSubmissions } from '../ledger/operator/selectSubmissions.ts'
import type { State } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import {
  type FilterOptions,
  type FiltersRead,
  hasFilters,
  narrowByText,
  readFilters,
  type SearchText,
} from './filters.ts'
import { findAll } from './references.ts'

/** A change to many submissions: its name, and what it can be done to. */
export interface BulkChange {
  verb: 'replay' | 'discard'
  did: 'replayed' | 'discarded'
  allowedStates: readonly State[]
  /** Without ids and a state. */
  defaultStates: readonly State[]
  /** Why a submission in another state is left alone, and what to do instead. */
  whyNotAllowed: (state: State) => string
  /** Why those that may have arrived are left alone unless they are named; null where they are not. */
  whySpared: string | null
  /** What is risked with these, one sentence a line; empty where nothing is. */
  riskOf: (submissions: readonly ListedSubmission[]) => string
  /** Whether it asks even where this is the only one. */
  asksAlways: (submission: ListedSubmission) => boolean
}

/** A submission that is left as it is. */
export interface Skipped {
  submission: Pick<ListedSubmission, 'id' | 'outboxId'>
  reason: string
}

/** What was done, by id, and what was left as it is; what an interruption has kept from being tried is in neither. */
export interface CarriedOut {
  done: string[]
  skipped: Skipped[]
}

/** How a change in bulk runs. */
export interface BulkRun {
  /** Aborted: the batch in hand is finished, the rest is not touched. */
  signal: AbortSignal
  /** After each batch: how many of all have been looked at. */
  onProgress(done: number): void
}

/** Why what took a step since it was chosen is left as it is. */
export const changedMeanwhile = 'changed meanwhile and was left alone'

/** Hands a batch after the other to `work`, and joins what came of them. */
export async function inBatches<T>(
  items: readonly T[],
  size: number,
  { signal, onProgress }: BulkRun,
  work: (batch: T[]) => Promise<CarriedOut>,
): Promise<CarriedOut> {
  const all: CarriedOut = { done: [], skipped: [] }
  let looked = 0
  for (const batch of batches(items, size)) {
    if (signal.aborted) break
    const { done, skipped } = await work(batch)
    all.done.push(...done)
    all.skipped.push(...skipped)
    looked += batch.length
    onProgress(looked)
  }
  return all
}

/** The pieces of a list, at most `size` long. */
export function* batches<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}

/** Which submissions a change is for: by name, or by the filters of `list`. */
export interface Choice {
  ids: readonly string[]
  /** Read where there are no ids. */
  filters: FilterOptions
  nowMs: number
}

/** What was chosen; or what is wrong with the choice, or names nothing. */
export type Chosen =
  | { kind: 'chosen'; submissions: ListedSubmission[]; skipped: Skipped[] }
  | { kind: 'invalid'; problems: string[] }
  | { kind: 'missing'; problems: string[] }

/** More at once would only be held in memory; the rest is for the next run. */
export const mostAtOnce = 100_000

/** Whether ids and filters make sense together. Pure. @returns what is wrong, in words */
export function choiceProblems(change: BulkChange, choice: Choice): string[] {
  const { ids, filters } = choice
  if (ids.length > 0 && (hasFilters(filters) || filters.limit !== undefined)) return ['give ids or filters, not both']
  const read = readChoice(change, choice)
  return read.kind === 'invalid' ? read.problems : []
}

/**
 * Chooses the submissions that a change is for, each with the revision under which it was seen.
 *
 * @param onCut told where a search for a text did not look at all of them
 */
export async function chooseSubmissions(
  ledger: Database,
  search: SearchText,
  change: BulkChange,
  choice: Choice,
  onCut: (message: string) => void,
): Promise<Chosen> {
  if (choice.ids.length > 0) return chooseNamed(ledger, change, choice.ids)
  const read = readChoice(change, choice)
  return read.kind === 'invalid' ? read : chooseMatching(ledger, search, change, read, onCut)
}

const readChoice = ({ allowedStates, defaultStates, whyNotAllowed }: BulkChange, { filters, nowMs }: Choice) =>
  readFilters(filters, { defaultStates, allowedStates, whyNotAllowed, nowMs })

async function chooseNamed(
  ledger: Database,
  { allowedStates, whyNotAllowed }: BulkChange,
  ids: readonly string[],
): Promise<Chosen> {
  const found = await findAll(ledger, ids)
  if (found.kind !== 'found') return found
  const fits = ({ state }: ListedSubmission) => allowedStates.includes(state)
  return {
    kind: 'chosen',
    submissions: found.submissions.filter(fits),
    skipped: found.submissions
      .filter((submission) => !fits(submission))
      .map((submission) => ({ submission, reason: `is ${submission.state}: ${whyNotAllowed(submission.state)}` })),
  }
}

async function chooseMatching(
  ledger: Database,
  search: SearchText,
  { whySpared }: BulkChange,
  read: Extract<FiltersRead, { kind: 'value' }>,
  onCut: (message: string) => void,
): Promise<Chosen> {
  const filter = await narrowByText(search, read, onCut)
  const limit = Math.min(read.limit ?? mostAtOnce, mostAtOnce)
  if (whySpared === null)
    return { kind: 'chosen', submissions: await selectSubmissions(ledger, filter, limit), skipped: [] }
  const submissions = filter.mayHaveArrived
    ? []
    : await selectSubmissions(ledger, { ...filter, mayHaveArrived: false }, limit)
  const spared = await selectSubmissions(ledger, { ...filter, mayHaveArrived: true }, mostAtOnce)
  const skipped = spared.map((submission) => ({ submission, reason: whySpared }))
  return { kind: 'chosen', submissions, skipped }
}
