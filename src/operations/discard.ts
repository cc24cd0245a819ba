import { writeDiscards } from '../ledger/operator/discardSubmissions.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { type State, statesNeedingAttention } from '../model.ts'
import { pluralize } from '../plainText.ts'
import { type BulkChange, type BulkRun, type CarriedOut, changedAmong, inBatches } from './bulkChange.ts'

const discardable: readonly State[] = [...statesNeedingAttention, 'accepted']

export const discardChange: BulkChange = {
  verb: 'discard',
  did: 'discarded',
  allowedStates: discardable,
  defaultStates: statesNeedingAttention,
  whyNotAllowed(state) {
    if (state === 'completed') return 'it has arrived'
    if (state === 'discarded') return 'it was given up before'
    return 'it is on its way; only failed, rejected, uncertain and accepted ones can be given up'
  },
  whySpared: null,
  riskOf(submissions) {
    const count = submissions.filter(isAccepted).length
    return count === 0
      ? ''
      : `The service has accepted ${pluralize(count, 'record')} of these and may complete what you give up: nobody will ask any more.\n`
  },
  asksAlways: isAccepted,
}

function isAccepted({ state }: Pick<ListedSubmission, 'state'>): boolean {
  return state === 'accepted'
}

/** As seen when it was chosen. */
export type Discarded = Pick<ListedSubmission, 'id' | 'outboxId' | 'revision' | 'key' | 'state'>

const batchSize = 500

/** A record that took a step since stays. */
export function discardSubmissions(
  operator: Operator,
  submissions: readonly Discarded[],
  run: BulkRun,
): Promise<CarriedOut> {
  return inBatches(submissions, batchSize, run, async (batch) => {
    const discarded = new Set(await writeDiscards(operator, batch))
    return { done: [...discarded], skipped: changedAmong(batch, discarded) }
  })
}
