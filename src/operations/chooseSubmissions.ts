import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { selectSubmissions } from '../ledger/operator/selectSubmissions.ts'
import type { Database } from '../postgres/database.ts'
import type { BulkChange, Skipped } from './bulkChange.ts'
import {
  type FilterOptions,
  type FiltersRead,
  hasFilters,
  narrowByText,
  readFilters,
  type SearchText,
} from './filters.ts'
import { findAll } from './references.ts'

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
