import { type ListedSubmission, selectSubmissions } from '../ledger/operator/selectSubmissions.ts'
import type { State } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import {
  type FilterOptions,
  type FiltersRead,
  hasFilters,
  narrowFilterByText,
  readFilters,
  type SearchText,
} from './filters.ts'
import { findEachSubmissionByName } from './references.ts'

export interface BulkChange {
  verb: 'replay' | 'discard'
  did: 'replayed' | 'discarded'
  allowedStates: readonly State[]
  defaultStates: readonly State[]
  whyNotAllowed: (state: State) => string
  /** Why records that may have arrived are left unless named; null if they are not left. */
  whySpared: string | null
  riskOf: (submissions: readonly ListedSubmission[]) => string
  asksAlways: (submission: ListedSubmission) => boolean
}

export interface Skipped {
  submission: Pick<ListedSubmission, 'id' | 'outboxId'>
  reason: string
}

/** Changed ids, and records that were left. After an interruption, untried records are in neither list. */
export interface CarriedOut {
  done: string[]
  skipped: Skipped[]
}

export interface BulkRun {
  /** If it is aborted, the batch is finished and the rest is left. */
  signal: AbortSignal
  onProgress(done: number): void
}

const hasChanged = 'has changed'

export const listSkippedAsChanged = (
  submissions: readonly Skipped['submission'][],
  written: ReadonlySet<string>,
): Skipped[] =>
  submissions.filter(({ id }) => !written.has(id)).map((submission) => ({ submission, reason: hasChanged }))

export async function carryOutInBatches<T>(
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

export function* batches<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}

export interface Choice {
  ids: readonly string[]
  filters: FilterOptions
  nowMs: number
}

export type Chosen =
  | { kind: 'chosen'; submissions: ListedSubmission[]; skipped: Skipped[] }
  | { kind: 'invalid'; problems: string[] }
  | { kind: 'missing'; problems: string[] }

/** Bounds the memory. The rest is for the next run. */
export const changedAtOnceMax = 100_000

export function choiceProblems(change: BulkChange, choice: Choice): string[] {
  const { ids, filters } = choice
  if (ids.length > 0 && (hasFilters(filters) || filters.limit !== undefined))
    return ['give ids or filters, not both: such as outbox:4711, or --code E001']
  const read = readChoice(change, choice)
  return read.kind === 'invalid' ? read.problems : []
}

/**
 * Chooses submissions with the revision that was seen.
 * @param onCut called if a text search did not read all of them
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
  const found = await findEachSubmissionByName(ledger, ids)
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
  const filter = await narrowFilterByText(search, read, onCut)
  const limit = Math.min(read.limit ?? changedAtOnceMax, changedAtOnceMax)
  if (whySpared === null)
    return { kind: 'chosen', submissions: await selectSubmissions(ledger, filter, limit), skipped: [] }
  const submissions = filter.mayHaveArrived
    ? []
    : await selectSubmissions(ledger, { ...filter, mayHaveArrived: false }, limit)
  const spared = await selectSubmissions(ledger, { ...filter, mayHaveArrived: true }, changedAtOnceMax)
  const skipped = spared.map((submission) => ({ submission, reason: whySpared }))
  return { kind: 'chosen', submissions, skipped }
}
