import { eraseRecords, type KeyRecord } from '../ledger/audit/eraseRecords.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import { type BulkRun, type CarriedOut, carryOutInBatches, listSkippedAsChanged } from './bulkChange.ts'

export function whyNotErased({ mayBeErased, state, reportDue }: KeyRecord): string | null {
  if (mayBeErased) return null
  if (state === 'completed' || state === 'discarded')
    return reportDue ? `is ${state}, but this is not written back to its row yet: try again later` : `is ${state}`
  if (state === 'failed' || state === 'rejected' || state === 'uncertain')
    return `is ${state} and needs attention: replay, resolve or discard it first`
  return `is ${state} and has not ended: try again later`
}

const batchSize = 100

export function eraseData(operator: Operator, records: readonly KeyRecord[], run: BulkRun): Promise<CarriedOut> {
  return carryOutInBatches(records, batchSize, run, async (batch) => {
    const erased = new Set(await eraseRecords(operator, batch))
    return { done: [...erased], skipped: listSkippedAsChanged(batch, erased) }
  })
}
