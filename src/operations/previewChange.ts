import { readDaemonActivity } from '../ledger/operator/readActivity.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { readSnapshot } from '../ledger/snapshot.ts'
import { states } from '../model.ts'
import { pluralize } from '../plainText.ts'
import { showDuration } from '../time.ts'
import { type BulkChange, changedAtOnceMax } from './bulkChange.ts'
import type { Databases } from './databases.ts'
import { estimateBacklog } from './readStatus.ts'

export interface Group extends Pick<ListedSubmission, 'state' | 'type' | 'code' | 'mayHaveArrived'> {
  count: number
}

export interface ChangePreview {
  verb: BulkChange['verb']
  count: number
  groups: Group[]
  first: readonly ListedSubmission[]
  /** True if there may be more than `changedAtOnceMax`. */
  isCapped: boolean
  risk: string
}

const firstMax = 5

/** @param chosen number of records before some were left out */
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
    isCapped: chosen === changedAtOnceMax,
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

export interface ReplayCost {
  requests: number
  durationMs: number
}

/** Estimates a replay's cost, as `status` does for the backlog. */
export async function readReplayCost(
  { ledger, config }: Pick<Databases, 'ledger' | 'config'>,
  count: number,
  rateLimit: { requests: number; windowMs: number },
): Promise<ReplayCost> {
  const [{ rateCapacity }, { pollsPerRecord }] = await Promise.all([
    readSnapshot(ledger),
    readDaemonActivity(ledger, config.keyOnFailure),
  ])
  const capacity = rateCapacity || rateLimit.requests
  const { windowMs } = rateLimit
  const { durationMs, pollsPerRecord: polls } = estimateBacklog({
    ...{ toSend: count, tracked: 0, pollsPerRecord, capacity, windowMs, lastDueInMs: 0 },
  })
  return { requests: Math.ceil(count * (1 + polls)), durationMs }
}

export function replayCostMessage({ requests, durationMs }: ReplayCost): string {
  return `It costs about ${pluralize(requests, 'request')}, which is ${showDuration(durationMs)} of the whole budget.`
}
