import { readActivity } from '../ledger/operator/readActivity.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { readSnapshot } from '../ledger/snapshot.ts'
import { states } from '../model.ts'
import { pluralize } from '../plainText.ts'
import { showDuration } from '../time.ts'
import { type BulkChange, mostAtOnce } from './bulkChange.ts'
import type { Databases } from './databases.ts'
import { estimateBacklog } from './readStatus.ts'

/** Submissions that are alike to whoever decides about them. */
export interface Group extends Pick<ListedSubmission, 'state' | 'type' | 'code' | 'mayHaveArrived'> {
  count: number
}

/** What a change would do. */
export interface ChangePreview {
  verb: BulkChange['verb']
  count: number
  /** How many of each kind, the most first. */
  groups: Group[]
  /** The first few. */
  first: readonly ListedSubmission[]
  /** There may be more that match: so many are done at once. */
  isCapped: boolean
  /** What is risked, one sentence a line; empty where nothing is. */
  risk: string
}

const firstMax = 5

/**
 * Says what a change would do to these. Pure.
 *
 * @param chosen how many they were before some of them were found to be left alone
 */
export function previewChange(
  change: BulkChange,
  submissions: readonly ListedSubmission[],
  chosen: number = submissions.length,
): ChangePreview {
  return {
    verb: change.verb,
    count: submissions.length,
    groups: groupsOf(submissions),
    first: submissions.slice(0, firstMax),
    isCapped: chosen === mostAtOnce,
    risk: change.riskOf(submissions),
  }
}

function groupsOf(submissions: readonly ListedSubmission[]): Group[] {
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

/** What sending so many again costs. */
export interface Cost {
  /** Requests of the budget: each is sent, and asked for as often as the last ones were. */
  requests: number
  /** How long the whole budget is spent on them, where nothing else wants it. */
  durationMs: number
}

/** Reckons what a replay of so many costs, as `status` reckons the backlog. */
export async function readReplayCost(
  { ledger, config }: Pick<Databases, 'ledger' | 'config'>,
  count: number,
  rateLimit: { requests: number; windowMs: number },
): Promise<Cost> {
  const [{ rateCapacity }, { pollsPerRecord }] = await Promise.all([
    readSnapshot(ledger),
    readActivity(ledger, config.keyOnFailure),
  ])
  const capacity = rateCapacity || rateLimit.requests
  const { windowMs } = rateLimit
  const { durationMs, pollsPerRecord: polls } = estimateBacklog({
    ...{ toSend: count, tracked: 0, pollsPerRecord, capacity, windowMs, lastDueInMs: 0 },
  })
  return { requests: Math.ceil(count * (1 + polls)), durationMs }
}

/** What it costs, in a sentence. Pure. */
export function costMessage({ requests, durationMs }: Cost): string {
  return `It costs about ${pluralize(requests, 'request')}, which is ${showDuration(durationMs)} of the whole budget.`
}
