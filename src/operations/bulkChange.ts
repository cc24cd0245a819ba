import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import type { State } from '../model.ts'

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
