import { assertNoDataLost } from '../ledger/history/history.ts'
import { type ListedSubmission, selectSubmissions } from '../ledger/operator/selectSubmissions.ts'
import { readDaemonActivity, readLedgerSnapshot } from '../ledger/snapshot.ts'
import { type State, states } from '../model/submission.ts'
import { pluralize } from '../plainText.ts'
import type { Database } from '../postgres/database.ts'
import { formatDuration } from '../time.ts'
import { type Databases, noSettingsMessage } from './databases.ts'
import {
  type FilterOptions,
  hasFilters,
  narrowFilterByText,
  type ParsedFilters,
  parseFilters,
  type SearchByText,
} from './filters.ts'
import { estimateBacklog } from './readStatus.ts'
import { findEachSubmissionByReference } from './references.ts'

export interface BulkChangeRules {
  verb: 'replay' | 'discard' | 'resolve'
  did: 'replayed' | 'discarded' | 'resolved'
  allowedStates: readonly State[]
  defaultStates: readonly State[]
  whyNotAllowed: (state: State) => string
  /** Why records that may have arrived are skipped unless named by id; null if such records are changed. */
  whySpared: string | null
  riskOf: (submissions: readonly ListedSubmission[]) => string
  asksAlways: (submission: ListedSubmission) => boolean
}

export interface SkippedRecord {
  submission: Pick<ListedSubmission, 'id' | 'outboxId'>
  reason: string
}

/** `done` has the ids of changed records. After an interruption, untried records are in neither list. */
export interface BulkOutcome {
  done: string[]
  skipped: SkippedRecord[]
  /** The error that stopped the change after its first batch. The caller shows the outcome, then the error. */
  failure?: unknown
}

export interface BulkChangeRun {
  /** If aborted, the current batch is finished, and the rest stays unchanged. */
  signal: AbortSignal
}

const hasChanged = 'has changed'

export const listSkippedAsChanged = (
  submissions: readonly SkippedRecord['submission'][],
  written: ReadonlySet<string>,
): SkippedRecord[] =>
  submissions.filter(({ id }) => !written.has(id)).map((submission) => ({ submission, reason: hasChanged }))

export async function carryOutInBatches<T>(
  items: readonly T[],
  size: number,
  { signal }: BulkChangeRun,
  work: (batch: T[]) => Promise<BulkOutcome>,
): Promise<BulkOutcome> {
  const all: BulkOutcome = { done: [], skipped: [] }
  for (const batch of inBatches(items, size)) {
    if (signal.aborted) break
    try {
      const { done, skipped } = await work(batch)
      all.done.push(...done)
      all.skipped.push(...skipped)
    } catch (failure) {
      if (all.done.length + all.skipped.length === 0) throw failure
      return { ...all, failure }
    }
  }
  return all
}

export function* inBatches<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}

export interface RecordChoice {
  ids: readonly string[]
  filters: FilterOptions
  nowMs: number
}

export type ChosenRecords =
  | { kind: 'chosen'; submissions: ListedSubmission[]; skipped: SkippedRecord[] }
  | { kind: 'invalid'; problems: string[] }
  | { kind: 'missing'; problems: string[] }

/** Bounds the memory. Another run changes further records. */
export const recordsPerChangeMax = 100_000

export function findChoiceProblems(change: BulkChangeRules, choice: RecordChoice): string[] {
  const { ids, filters } = choice
  if (ids.length > 0 && (hasFilters(filters) || filters.limit !== undefined))
    return ['give ids or filters, not both: such as outbox:4711, or --code E001']
  const read = readChoice(change, choice)
  return read.kind === 'invalid' ? read.problems : []
}

/**
 * @param onCut called if a text search did not read all records
 * @throws LedgerMayHaveLostData
 */
export async function chooseSubmissions(
  ledger: Database,
  search: SearchByText,
  change: BulkChangeRules,
  choice: RecordChoice,
  onCut: (message: string) => void,
): Promise<ChosenRecords> {
  await assertNoDataLost(ledger)
  if (choice.ids.length > 0) return chooseNamed(ledger, change, choice.ids)
  const read = readChoice(change, choice)
  return read.kind === 'invalid' ? read : chooseMatching(ledger, search, change, read, onCut)
}

const readChoice = (
  { allowedStates, defaultStates, whyNotAllowed }: BulkChangeRules,
  { filters, nowMs }: RecordChoice,
) => parseFilters(filters, { defaultStates, allowedStates, whyNotAllowed, nowMs })

async function chooseNamed(
  ledger: Database,
  { allowedStates, whyNotAllowed }: BulkChangeRules,
  ids: readonly string[],
): Promise<ChosenRecords> {
  const found = await findEachSubmissionByReference(ledger, ids)
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
  search: SearchByText,
  { whySpared }: BulkChangeRules,
  read: Extract<ParsedFilters, { kind: 'value' }>,
  onCut: (message: string) => void,
): Promise<ChosenRecords> {
  const filter = await narrowFilterByText(search, read, onCut)
  const limit = Math.min(read.limit ?? recordsPerChangeMax, recordsPerChangeMax)
  if (whySpared === null)
    return { kind: 'chosen', submissions: await selectSubmissions(ledger, filter, limit), skipped: [] }
  const submissions = filter.mayHaveArrived
    ? []
    : await selectSubmissions(ledger, { ...filter, mayHaveArrived: false }, limit)
  const spared = await selectSubmissions(ledger, { ...filter, mayHaveArrived: true }, recordsPerChangeMax)
  const skipped = spared.map((submission) => ({ submission, reason: whySpared }))
  return { kind: 'chosen', submissions, skipped }
}

export const previewedRecordsMax = 5

export interface SubmissionGroup extends Pick<ListedSubmission, 'state' | 'type' | 'code' | 'mayHaveArrived'> {
  count: number
}

/** The largest group comes first. */
export function groupSubmissionsByKind(submissions: readonly ListedSubmission[]): SubmissionGroup[] {
  const kinds = Map.groupBy(
    submissions,
    ({ state, type, code, mayHaveArrived }) => `${state} ${type} ${code} ${mayHaveArrived}`,
  )
  return [...kinds.values()]
    .flatMap(([first, ...others]) => {
      if (first === undefined) return []
      const { state, type, code, mayHaveArrived } = first
      return [{ count: 1 + others.length, state, type, code, mayHaveArrived }]
    })
    .sort((a, b) => b.count - a.count || states.indexOf(a.state) - states.indexOf(b.state))
}

/** Estimates the cost as `status` estimates the backlog. */
export async function readReplayCostMessage({ ledger }: Databases, count: number): Promise<string> {
  const [{ rateCapacity, rateWindowMs }, { pollsPerRecord }] = await Promise.all([
    readLedgerSnapshot(ledger),
    readDaemonActivity(ledger),
  ])
  if (rateCapacity === 0) return `The cost is unknown: ${noSettingsMessage}`
  const { durationMs, pollsPerRecord: polls } = estimateBacklog({
    ...{ toSend: count, tracked: 0, pollsPerRecord, capacity: rateCapacity, windowMs: rateWindowMs, lastDueInMs: 0 },
  })
  const requests = Math.ceil(count * (1 + polls))
  return `The replay costs about ${pluralize(requests, 'request')}, which is ${formatDuration(durationMs)} of the whole budget.`
}
