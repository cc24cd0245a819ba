import { readNewestWaitingVersions } from '../ledger/documents.ts'
import { discardSeenSubmissions } from '../ledger/operator/decisions.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { type State, statesNeedingAttention } from '../model/submission.ts'
import { pluralize } from '../plainText.ts'
import {
  type BulkChangeRules,
  type BulkChangeRun,
  type BulkOutcome,
  carryOutInBatches,
  listSkippedAsChanged,
} from './bulkChange.ts'

const discardable: readonly State[] = ['queued', ...statesNeedingAttention, 'accepted']

export const discardRules: BulkChangeRules = {
  verb: 'discard',
  did: 'discarded',
  allowedStates: discardable,
  defaultStates: statesNeedingAttention,
  whyNotAllowed(state) {
    if (state === 'completed') return 'it has arrived'
    if (state === 'discarded') return 'it was discarded before'
    return 'it is under way. Wait for its answer'
  },
  whySpared: null,
  riskOf(submissions) {
    const accepted = submissions.filter(isAccepted).length
    const inDoubt = submissions.filter(({ state, wasSent }) => state === 'queued' && wasSent).length
    const risks: string[] = []
    if (accepted > 0)
      risks.push(
        `The service has accepted ${pluralize(accepted, 'record')} of these and may still complete them, but outboxd will not ask any more.\n`,
      )
    if (inDoubt > 0)
      risks.push(`${pluralize(inDoubt, 'record')} of these may have arrived: ask the operator of the service first.\n`)
    return risks.join('')
  },
  asksAlways: isAccepted,
}

function isAccepted({ state }: Pick<ListedSubmission, 'state'>): boolean {
  return state === 'accepted'
}

export type DiscardCandidate = Pick<ListedSubmission, 'id' | 'outboxId' | 'revision' | 'key' | 'state'>

const batchSize = 500

export function discardSubmissions(
  operator: Operator,
  submissions: readonly DiscardCandidate[],
  { dryRun = false, ...run }: BulkChangeRun & { dryRun?: boolean },
): Promise<BulkOutcome> {
  return carryOutInBatches(submissions, batchSize, run, async (batch) => {
    const newest = await readNewestWaitingVersions(
      operator.ledger,
      batch.map(({ id }) => id),
    )
    const skipped = batch.flatMap((submission) =>
      newest.has(submission.id) ? [{ submission, reason: asErpHasIt }] : [],
    )
    const others = batch.filter(({ id }) => !newest.has(id))
    if (dryRun) return { done: others.map(({ id }) => id), skipped }
    const discarded = new Set(await discardSeenSubmissions(operator, others))
    return { done: [...discarded], skipped: [...skipped, ...listSkippedAsChanged(others, discarded)] }
  })
}

const asErpHasIt =
  'waits as the newest version of its document, as the ERP has it. Cancel or change the document in the ERP first'
